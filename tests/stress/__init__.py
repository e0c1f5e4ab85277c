"""Random tries of all kinds; judge.py decides what counts as a failure, __main__.py runs the campaign."""
