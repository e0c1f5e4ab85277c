"""Hostile input of all kinds; see campaign.py for what counts as a failure."""
