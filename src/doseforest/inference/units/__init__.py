"""Intervals of units' effects, by a debiased forest in bags beside the one that answers."""
