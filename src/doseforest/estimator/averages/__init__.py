"""Average curves of the training population, doubly robust."""
