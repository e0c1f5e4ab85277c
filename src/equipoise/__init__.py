"""Train neural classifiers whose confidence can be believed, and prove it."""
