"""Averages with intervals: curves, slopes, shifts of the dose, projections on covariates."""
