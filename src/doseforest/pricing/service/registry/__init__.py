"""Policies: their files, which one serves, and how units are put to them."""
