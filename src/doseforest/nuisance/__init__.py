"""Nuisances, cross-fitted: the outcome given dose and covariates, the dose given covariates."""
