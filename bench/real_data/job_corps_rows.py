"""Job Corps: hours of academic and vocational training, and weeks of work in the second year.

4,024 young people who enrolled and trained for at least 40 hours. Hours were not random: 49
covariates of the time of enrolment are controls. Colangelo and Lee's own estimates of the average
curve, with standard errors, are the published numbers.
"""

from __future__ import annotations

from bench.real_data.data_folder import Frame, drawn, read_data
from bench.real_data.dose_rows import DoseRows

FILE = "jobcorps_colangelo_lee.parquet"
ESTIMATES_FILE = "jobcorps_colangelo_lee_published_estimates.csv"
OUTCOME = "y"  # weeks worked in the second year, per cent
DOSE = "d"  # hours of training in the first year
BANDWIDTH = 177.9  # hours, of the published estimates below
PUBLISHED = "rf_c3_L5_hstar"  # with random forests and five folds, at the best bandwidth


def read_trainees(n_rows: int | None = None) -> Frame:
    """All trainees, or some drawn at random."""
    return drawn(read_data(FILE), n_rows)


def rows(trainees: Frame) -> DoseRows:
    """Hours and weeks of work, with everything else as covariates."""
    X = trainees.drop(columns=[OUTCOME, DOSE])
    return DoseRows(X, trainees[OUTCOME].to_numpy(float), trainees[DOSE].to_numpy(float))


def read_published(estimates: str = PUBLISHED) -> Frame:
    """The average curve as published: doses `t`, values `beta`, standard errors `se`."""
    known = read_data(ESTIMATES_FILE)
    return known[known["file"] == estimates]
