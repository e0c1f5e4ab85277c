"""Calibration losses: pure functions and plain modules of (logits, labels); one file per method."""
