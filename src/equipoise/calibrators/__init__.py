"""Post-hoc maps from logits to logits, fitted on held-out predictions; one file per method."""
