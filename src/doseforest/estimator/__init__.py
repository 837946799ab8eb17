"""The estimator: rows, the plan of a fit, corrections, averages, and the forest that answers."""
