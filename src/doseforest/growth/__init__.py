"""Growth: curve distances, the split statistic, the split search and the grower."""
