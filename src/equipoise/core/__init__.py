"""What everyone speaks: Predictions, split names, input checks, errors, atomic files, seeds."""
