"""Figures drawn from records that metrics and histories give."""
