"""The metrics by name."""

from __future__ import annotations

from equipoise.experiments.catalogue.entry import Entry

__all__ = ["METRICS"]

METRICS: dict[str, Entry] = {}
