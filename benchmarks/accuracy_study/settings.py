"""Designs with their sizes, and the bars."""

from __future__ import annotations

PUBLISHED = ("polynomial", "sinusoidal", "exponential")
OVERLAP = ("randomised", "confounded", "steps", "binary", "linear")
SIZES = dict.fromkeys(OVERLAP, 2000) | dict.fromkeys(PUBLISHED, 1000)
MUST_LEAD = ("confounded", "randomised", "steps", "binary")
FIRST_SEED = 1000  # nobody has tuned on the simulations from here on

MOST_PUBLISHED_RMS, AIMED_PUBLISHED_RMS = 1.1, 0.8
MOST_EXCESS = 1.05  # of the best row's error
MOST_AVERAGE_RMSE, MOST_AVERAGE_BIAS = 0.09, 0.02
MOST_FIT_SECONDS, MOST_FIT_BYTES = 600.0, 4e9
