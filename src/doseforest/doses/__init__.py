"""The dose: samples, grids and ranges of it, functions of it, and kernels over it."""
