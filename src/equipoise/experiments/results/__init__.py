"""What runs say together: groups, means over seeds, tests, tables, figures, reports."""
