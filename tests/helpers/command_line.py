"""The command line as a test sees it."""

from equipoise.cli import main


def run(capsys, *words):
    """Give the exit code, what was printed, and what was said beside it."""
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err
