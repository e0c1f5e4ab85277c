"""Settings of a method that are chosen on ``tune``."""
