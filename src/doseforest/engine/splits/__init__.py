"""Splits: curve distances, split statistics, guards and the split search."""
