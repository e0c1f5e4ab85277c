"""What to run: specs of runs, comparisons and searches, parsed, checked and identified."""
