"""What the fuzzer of the loader does to files, and that the loader stands it, in small."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import forest_file_check
from doseforest import ForestFileError, load_forest
from doseforest.engine import Forest
from forest_file_check import InsaneForestError, check_file
from forest_file_mutations import Parts, crossed, mutated, sealed, take_apart

SEEDS = sorted((Path(__file__).parents[1] / "stored_forests").glob("*.dose"))
PLAIN = next(path for path in SEEDS if path.name == "format_1.dose")
each_seed = pytest.mark.parametrize("seed", SEEDS, ids=lambda path: path.name)
MOST_BYTES = 100_000


def flipped(data, most):
    """Some bytes changed, in place of a fuzzer's own ways."""
    rng = random.Random(data[:200])
    changed = bytearray(data)
    for _ in range(3):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[:most])


@each_seed
def test_a_file_taken_apart_and_sealed_again_is_the_same(seed):
    assert sealed(take_apart(seed.read_bytes())) == seed.read_bytes()


@each_seed
def test_changed_files_are_refused_or_sane(seed, tmp_path):
    original, path = seed.read_bytes(), tmp_path / "model.dose"
    files = {mutated(original, MOST_BYTES, number, flipped) for number in range(100)}
    loaded = [check_file(file, path) for file in files]  # raises on anything else
    # Changes reach past the checksums: some do no harm, as a number in a leaf.
    assert 0.05 < np.mean(loaded) < 0.8


def test_changed_files_reach_many_checks(tmp_path):
    path = tmp_path / "model.dose"
    messages = set()
    for number in range(300):
        path.write_bytes(mutated(PLAIN.read_bytes(), MOST_BYTES, number, flipped))
        try:
            load_forest(path)
        except ForestFileError as error:
            messages.add(str(error).replace(str(path), "").strip("'\"")[:60])
    assert len(messages) > 30
    assert sum("checksum" in message for message in messages) <= 2


def test_files_that_are_mixed_are_refused_or_sane(tmp_path):
    path = tmp_path / "model.dose"
    for number in range(40):
        rng = random.Random(number)
        first, second = (rng.choice(SEEDS).read_bytes() for _ in range(2))
        check_file(crossed(first, second, MOST_BYTES, number), path)


def test_a_change_keeps_to_the_room_that_there_is():
    original = PLAIN.read_bytes()
    for number in range(100):
        assert len(mutated(original, len(original), number, flipped)) <= len(original)


def test_what_cannot_be_taken_apart_is_changed_as_bytes():
    assert take_apart(b"DOSEFRST") is None
    assert mutated(b"DOSEFRST", 100, 0, lambda data, most: data + b"!") == b"DOSEFRST!"


def test_only_the_loaders_own_error_is_a_refusal(tmp_path, monkeypatch):
    def broken(path, memory_map):
        raise KeyError("nodes")

    monkeypatch.setattr(forest_file_check, "load_forest", broken)
    with pytest.raises(KeyError):
        check_file(PLAIN.read_bytes(), tmp_path / "model.dose")


def test_a_forest_that_answers_with_nan_is_insane(tmp_path, monkeypatch):
    def answer(forest, rows, n_jobs):
        return np.full((len(rows), 4), np.nan)

    monkeypatch.setattr(Forest, "predict", answer)
    with pytest.raises(InsaneForestError, match="nan"):
        check_file(PLAIN.read_bytes(), tmp_path / "model.dose")


def test_a_huge_number_excuses_an_answer_that_is_not_finite(tmp_path):
    parts = take_apart(PLAIN.read_bytes())
    names = [piece.name for piece in parts.pieces]
    pieces = list(parts.pieces)
    place = names.index("fallback")  # a mean of 1e308, shrunk to ten thousand million times
    values = np.full(len(pieces[place].data) // 8, 1e308)
    pieces[place] = type(pieces[place])("fallback", "<f8", [len(values)], values.tobytes())
    metadata = {**parts.metadata, "leaf_curve": {"kind": "ratio", "shrinkage": 1e10}}
    assert check_file(sealed(Parts(metadata, tuple(pieces))), tmp_path / "model.dose")


@pytest.mark.parametrize("dose", [2**64, 10**300])
def test_whole_numbers_of_any_size_are_judged(dose, tmp_path):
    parts = take_apart(PLAIN.read_bytes())
    metadata = {**parts.metadata, "doses": [0.0, 0.5, 0.75, dose]}
    assert check_file(sealed(Parts(metadata, parts.pieces)), tmp_path / "model.dose")
