"""Small fits of every kind answer as they did when their answers were stored."""

from __future__ import annotations

import numpy as np
import pytest

from bench.golden import FITS, compare, part_keys, read_answers, run
from bench.golden.answers import Comparison, decoded, encoded

STORED = read_answers()


@pytest.mark.parametrize("name", FITS)
def test_a_golden_fit_answers_as_it_is_stored(name: str) -> None:
    found = compare(name, run(name), STORED)
    assert found.holds, (
        f"{found}. If the change is meant, say why in the changelog and run: "
        f"python -m bench.golden write {name!r}"
    )


@pytest.mark.parametrize("name", ["weights and groups", "engine, L1 of drawn features"])
def test_two_threads_give_the_same_bits_as_one(name: str) -> None:
    assert encoded(run(name, n_jobs=2)) == encoded(run(name, n_jobs=1))


def test_every_stored_answer_is_of_a_fit() -> None:
    assert list(STORED) == list(FITS)


def test_answers_come_back_with_every_bit() -> None:
    odd = np.array([[0.1, -0.0, np.nan], [np.inf, -np.inf, 5e-324]])
    assert decoded(encoded({"odd": odd}))["odd"].tobytes() == odd.tobytes()


def compared(name: str, change: float) -> Comparison:
    answers = decoded(STORED[name])
    first = next(iter(answers))
    answers[first] = answers[first] * (1 + change)
    return compare(name, answers, STORED)


def test_last_digits_may_differ_where_linear_algebra_is_and_nowhere_else() -> None:
    assert compared("few levels", 0.0).same_bits
    assert compared("few levels", 1e-12).holds
    assert not compared("few levels", 1e-5).holds
    assert compared("continuous dose", 1e-3).holds  # searches for lengths of processes
    assert not compared("continuous dose", 0.1).holds
    assert not compared("engine", 1e-15).holds


def test_an_answer_that_is_gone_or_new_does_not_hold() -> None:
    answers = decoded(STORED["engine"])
    del answers["leaves"]
    assert not compare("engine", answers, STORED).holds
    assert "leaves" in str(compare("engine", answers, STORED))


def test_every_part_of_the_algorithm_has_a_key_of_its_own() -> None:
    keys = part_keys()
    assert keys.keys() == {part for fit in FITS.values() for part in fit.parts}
    assert len(set(keys.values())) == len(keys)
