"""A look inside finished forests: importance, trees, overlap, summaries and pictures."""
