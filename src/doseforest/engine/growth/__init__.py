"""Growth: the frontier, the grower, the node table, and where rows live."""
