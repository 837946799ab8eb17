"""Corrections of an outcome model's curves by forests: orthogonal (the default), and by kernels."""
