"""Nuisances: outcome models of the response given dose and covariates, and their cross-fitting."""
