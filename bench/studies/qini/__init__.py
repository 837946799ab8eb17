"""The study "qini": Table 2 of the GCF paper, on experiments with a known truth and on real ones.

`models` is who is compared, `experiment` the simulated experiments, `trials` the real ones,
`tables` what is said about them, `study` runs what is missing.
"""
