"""A workspace told to people: one page without anything from the network."""
