"""Hypothesis without a stopwatch: a busy machine is no defect."""

from hypothesis import settings

settings.register_profile("core", deadline=None)
settings.load_profile("core")
