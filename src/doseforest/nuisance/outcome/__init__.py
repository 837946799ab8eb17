"""Outcome models: the spline core, boosted trees, their stack, and how they are stored."""
