"""From tables to binned features, exact channels and the rows of each tree."""
