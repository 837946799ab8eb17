"""Shapes of curves: projections on them, and a test whether the data reject them."""
