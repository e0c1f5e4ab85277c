"""Thin adapters to other libraries, each behind its own extra."""
