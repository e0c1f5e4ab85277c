"""Datasets by name, the four splits, augmentation, batches that carry the sample index."""
