"""Functions of the dose that curves are made of."""
