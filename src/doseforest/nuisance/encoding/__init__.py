"""Categories as numbers, for models that take numbers only."""
