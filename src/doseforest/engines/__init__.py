"""Engines: where rows live and how their histograms are summed."""
