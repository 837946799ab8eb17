"""A look inside finished forests: which features count, and trees as text and as pictures."""
