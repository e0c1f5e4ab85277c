"""Specs, the catalogue, run folders and engines."""
