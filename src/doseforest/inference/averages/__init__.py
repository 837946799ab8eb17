"""Averages over units: queries of a forest, projections on covariates."""
