"""The stages of a fit: plan, nuisances and corrections, weights, overlap, distilled forests."""
