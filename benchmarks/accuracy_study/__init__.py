"""Accuracy on designs with a known truth: `benchmarks/accuracy.py` runs these studies."""
