"""Golden answers: small fits whose answers are stored, so that a change of behaviour shows.

`fits` has the fits, `answers` stores and compares what they answer, and
``python -m bench.golden`` does both on the command line.
"""

from bench.golden.answers import Comparison, compare, part_keys, read_answers, write_answers
from bench.golden.fits import FITS, GoldenFit, run

__all__ = [
    "FITS",
    "Comparison",
    "GoldenFit",
    "compare",
    "part_keys",
    "read_answers",
    "run",
    "write_answers",
]
