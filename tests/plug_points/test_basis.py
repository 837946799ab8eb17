"""Plug point: functions of the dose, in this file and one line of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from doseforest import ForestFileError, GeneralizedCausalForest, load_forest
from doseforest.base.container import read_container, write_container
from doseforest.doses import BASES
from doseforest.doses.bases.dose_basis import BasisLine


class Waves:
    """A recipe: sines and cosines over the range of the doses."""

    def fit(self, dose, weights=None):
        return FittedWaves(float(dose.min()), float(dose.max()))


@dataclass(frozen=True)
class FittedWaves:
    """What it fits."""

    kind: ClassVar[str] = "waves"
    low: float
    high: float
    n_functions: ClassVar[int] = 3

    def evaluate(self, doses):
        angle = np.pi * (np.asarray(doses) - self.low) / (self.high - self.low)
        return np.column_stack([np.ones(len(angle)), np.cos(angle), np.sin(angle)])

    def derivative(self, doses):
        angle = np.pi * (np.asarray(doses) - self.low) / (self.high - self.low)
        slope = np.pi / (self.high - self.low)
        return slope * np.column_stack([np.zeros(len(angle)), -np.sin(angle), np.cos(angle)])

    def to_json(self):
        return {"kind": self.kind, "ends": [self.low, self.high]}

    @classmethod
    def from_json(cls, values):
        low, high = values["ends"]
        if not low < high:
            raise ValueError("the ends are out of order")
        return cls(low, high)


@pytest.fixture(name="line")
def _line(monkeypatch):
    monkeypatch.setitem(BASES, "waves", BasisLine(Waves, FittedWaves))


def draw(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 2)), rng.uniform(0, 4, size=n)
    return x, dose, 20 + x[:, 0] + 4 * (x[:, 1] > 0) * np.sin(dose) + 0.5 * rng.normal(size=n)


def fitted(basis, **parameters):
    x, dose, y = draw()
    settings = {"n_trees": 60, "outcome_model": "trees", "baseline": 1.0, "random_state": 0}
    forest = GeneralizedCausalForest(basis=basis, n_jobs=1, **{**settings, **parameters})
    return forest.fit(x, y, treatment=dose)


def effects(forest):
    return forest.effect(draw(40, seed=1)[0], 3.0)


@pytest.mark.usefixtures("line")
def test_a_forest_takes_it_by_name_and_as_an_object_and_a_file_holds_it(tmp_path):
    named, given = fitted("waves"), fitted(Waves())
    assert (effects(named) == effects(given)).all()
    assert (effects(named) != effects(fitted("legendre"))).any()
    given.save(tmp_path / "model.dose")
    again = load_forest(tmp_path / "model.dose")
    np.testing.assert_array_equal(effects(again), effects(given))
    x = draw(9)[0]
    np.testing.assert_array_equal(again.elasticity(x, 2.0), given.elasticity(x, 2.0))


@pytest.mark.usefixtures("line")
def test_intervals_are_stored_with_it(tmp_path):
    forest = fitted(Waves(), inference="bags", n_trees=200)
    forest.save(tmp_path / "model.dose")
    x = draw(9)[0]
    again = load_forest(tmp_path / "model.dose")
    np.testing.assert_array_equal(again.effect_interval(x, 3.0), forest.effect_interval(x, 3.0))


@pytest.mark.usefixtures("line")
def test_values_that_do_not_fit_are_a_damaged_file(tmp_path):
    fitted("waves").save(tmp_path / "model.dose")
    own = read_container(tmp_path / "model.dose")
    described = own.metadata["parts"][0]["correction"]["basis"]
    described["ends"].reverse()
    write_container(tmp_path / "model.dose", own.metadata, own.arrays)
    with pytest.raises(ForestFileError, match="out of order"):
        load_forest(tmp_path / "model.dose")


def test_without_a_line_a_reader_says_which_kinds_there_are(tmp_path, monkeypatch):
    forest = fitted(Waves())
    monkeypatch.setitem(BASES, "waves", BasisLine(Waves, FittedWaves))
    forest.save(tmp_path / "model.dose")
    monkeypatch.delitem(BASES, "waves")
    with pytest.raises(ForestFileError, match=r"stored basis must be one of.*Got 'waves'"):
        load_forest(tmp_path / "model.dose")


def test_without_a_line_saving_names_it_and_the_cure(tmp_path):
    with pytest.raises(TypeError, match=r"BASES .*FittedWaves.*distill\(\)"):
        fitted(Waves()).save(tmp_path / "model.dose")
    assert not list(tmp_path.iterdir())


def test_a_cluster_takes_names_of_the_table_only():
    params = pytest.importorskip("doseforest.spark.params", exc_type=ImportError)
    assert not params.TRAINING["basis"].holds("waves")
