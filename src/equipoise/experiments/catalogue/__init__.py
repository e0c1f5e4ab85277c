"""The catalogue: every method by name, as literal dictionaries of frozen entries, one file per room."""
