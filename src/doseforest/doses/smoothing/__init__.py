"""Smoothing over doses: kernels, their weights, boundary correction and bandwidths."""
