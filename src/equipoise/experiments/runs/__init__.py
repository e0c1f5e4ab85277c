"""One run: its stages, its folder, its scores."""
