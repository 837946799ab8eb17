"""Golden answers on disk: every bit of them as hexadecimal floats, lines that a diff can show."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.golden.fits import FITS, Answers

FILE = Path(__file__).parent / "answers.json"

# Of the largest value of an answer. Another processor adds in another order in linear algebra and
# boosted trees: with OpenBLAS's kernels for processors from Nehalem to SkylakeX these answers are
# within 4e-12 of each other. The engine rounds what it is given to a grid of 2^-24, 6e-8, of the
# largest value, where a last digit may decide between two points. What is meant changes far more.
TOLERANCE = 1e-7
# Lengths of Gaussian processes are searched for in single precision, and the search ends before it
# has converged: with those kernels, answers are within 1.2e-3 of each other.
SEARCH_TOLERANCE = 1e-2
DIGEST_LENGTH = 16

Stored = dict[str, dict[str, dict[str, list[str] | list[int]]]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the answers of a fit differ from those that are stored."""

    same_bits: bool
    difference: float  # the largest, as a share of the largest value of its answer; inf for others
    tolerance: float
    where: str  # the answer that differs most

    @property
    def holds(self) -> bool:
        """Whether the answers are the stored ones, up to what machines may differ by."""
        return self.same_bits or self.difference <= self.tolerance

    def __str__(self) -> str:
        if self.same_bits:
            return "same bits"
        said = "within tolerance" if self.holds else "DIFFERENT"
        return f"{said}, max difference {self.difference:.1e} of the scale, in {self.where!r}"


def encoded(answers: Answers) -> dict[str, dict[str, list[str] | list[int]]]:
    """Answers as plain JSON: the shape of each, and a line of numbers for each of its rows.

    Examples
    --------
    >>> encoded({"effect": np.array([0.5, -0.0])})
    {'effect': {'shape': [2], 'rows': ['0x1.0000000000000p-1 -0x0.0p+0']}}
    """
    return {
        name: {
            "shape": list(own.shape),
            "rows": [
                " ".join(float(value).hex() for value in row)
                for row in own.reshape(-1, own.shape[-1])
            ],
        }
        for name, own in answers.items()
    }


def decoded(stored: Mapping[str, Mapping[str, list]]) -> Answers:
    """Answers from plain JSON.

    Examples
    --------
    >>> decoded({"effect": {"shape": [2], "rows": ["0x1.8p+1 nan"]}})
    {'effect': array([ 3., nan])}
    """
    return {
        name: np.array(
            [[float.fromhex(value) for value in row.split()] for row in own["rows"]]
        ).reshape(own["shape"])
        for name, own in stored.items()
    }


def read_answers(path: Path = FILE) -> Stored:
    """The stored answers of every fit, as they are in the file."""
    stored: Stored = json.loads(path.read_text())
    return stored


def write_answers(answers: Mapping[str, Answers], path: Path = FILE) -> None:
    """Store the answers of fits; those of other fits in the file stay, unless they are no more."""
    kept = read_answers(path) if path.exists() else {}
    found = {**kept, **{name: encoded(own) for name, own in answers.items()}}
    ordered = {name: found[name] for name in FITS if name in found}
    text = json.dumps(ordered, indent=1)
    text = re.sub(r"\[\s+(\d+(?:,\s+\d+)*)\s+\]", _on_one_line, text)
    path.write_text(text + "\n")


def _on_one_line(shape: re.Match[str]) -> str:
    return f"[{' '.join(shape[1].split())}]"


def compare(name: str, answers: Answers, stored: Stored) -> Comparison:
    """The answers of a fit beside those that are stored."""
    tolerance = SEARCH_TOLERANCE if FITS[name].searches else TOLERANCE
    if FITS[name].exact:
        tolerance = 0.0
    expected = decoded(stored.get(name, {}))
    if encoded(answers) == stored.get(name):
        return Comparison(True, 0.0, tolerance, "")
    if answers.keys() != expected.keys():
        odd = sorted(answers.keys() ^ expected.keys())
        return Comparison(False, np.inf, tolerance, ", ".join(odd))
    differences = {key: _difference(own, expected[key]) for key, own in answers.items()}
    worst = max(differences, key=lambda key: differences[key])
    return Comparison(False, differences[worst], tolerance, worst)


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of two answers as a share of the largest value."""
    if found.shape != expected.shape or (np.isfinite(found) != np.isfinite(expected)).any():
        return np.inf
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return np.inf
    scale = np.abs(expected[finite]).max(initial=0.0)
    largest = float(np.abs(found[finite] - expected[finite]).max(initial=0.0))
    return largest / scale if scale > 0 else (np.inf if largest else 0.0)


def part_keys(path: Path = FILE) -> dict[str, str]:
    """A digest of each part of the algorithm: of the stored answers of all fits that cover it.

    Results of benchmarks are kept under the digests of the parts that they rest on. A file that
    moves changes none of them, and neither does another name for a fit; an answer that changes
    does.
    """
    stored = read_answers(path)
    digests = {name: _digest(json.dumps(own, sort_keys=True)) for name, own in stored.items()}
    parts = sorted({part for fit in FITS.values() for part in fit.parts})
    return {
        part: _digest(
            " ".join(sorted(own for name, own in digests.items() if part in FITS[name].parts))
        )
        for part in parts
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
