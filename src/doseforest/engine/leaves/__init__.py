"""Leaves: what is summed in them and how the sums become curves."""
