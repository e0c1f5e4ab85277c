"""What the papers prove, as functions: phi, confidence regions, posterior recovery."""
