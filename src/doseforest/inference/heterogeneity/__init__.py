"""Whether units differ: calibration, ranked effects, tests."""
