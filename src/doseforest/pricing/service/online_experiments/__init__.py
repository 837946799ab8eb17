"""Experiments with policies online: arms, their results, and the table to learn from."""
