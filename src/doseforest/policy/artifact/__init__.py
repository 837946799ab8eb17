"""Policies as things that are kept: rules, prices and a forest that decide for new units."""
