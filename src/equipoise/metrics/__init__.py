"""Calibration metrics: one streaming, mergeable state; kernel errors; scores; intervals and tests."""
