"""Public datasets that are said to be small, so that a test can write them."""

from dataclasses import replace

from equipoise.data.official import OFFICIAL


def set_counts(monkeypatch, **counts):
    """Let datasets have so many rows to train on and to test on."""
    for name, both in counts.items():
        monkeypatch.setitem(OFFICIAL, name, replace(OFFICIAL[name], counts=both))
