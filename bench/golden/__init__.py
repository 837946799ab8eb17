"""Golden answers: small fits whose answers are stored, so that a change of behaviour shows.

`fits` has the fits, `answers` stores and compares what they answer, and
``python -m bench.golden`` does both on the command line. `check_before_use` makes sure that the
code answers so before results are kept under the digests of stored answers.
"""

from bench.golden.answers import Comparison, compare, part_keys, read_answers, write_answers
from bench.golden.check_before_use import (
    ChangedAnswersError,
    code_stamp,
    require_stored_answers,
)
from bench.golden.fits import FITS, GoldenFit, run

__all__ = [
    "FITS",
    "ChangedAnswersError",
    "Comparison",
    "GoldenFit",
    "code_stamp",
    "compare",
    "part_keys",
    "read_answers",
    "require_stored_answers",
    "run",
    "write_answers",
]
