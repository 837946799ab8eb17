"""The engine: from bins and channels to finished forests of curves."""
