"""Overlap: who could have had which dose, weights, balance; measured, put into words, drawn."""
