"""Plug point: a split statistic in NumPy alone, in this file and one line of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from doseforest import CurveForest, GeneralizedCausalForest, load_forest
from doseforest.corrections import PublishedKernel, Stabilized
from doseforest.data.exact_grid import exact_channels
from doseforest.engine.splits.split_registry import SPLIT_STATISTICS


class SplitBySpreads:
    """A recipe: children are compared by the variances of their rows' curves."""

    def n_doses(self, n_columns):
        return n_columns

    def point_weights(self, n_doses, doses, given):
        return np.ones(n_doses) if given is None else given

    def n_channels(self, n_columns):
        return 2 * n_columns

    def lay_out(self, rows):
        values = rows.values - rows.values.mean(axis=0)
        channels = exact_channels(np.hstack([values, values**2]), weights=rows.weights, pad=True)
        return Spreads(channels, rows.quadrature, rows.distance)


@dataclass(frozen=True)
class Spreads:
    """The statistic that it lays out."""

    channels: np.ndarray
    quadrature: np.ndarray
    distance: object
    weight_channel: ClassVar[int] = -1
    noise_per_row: ClassVar[float] = 1e-9

    def child_curves(self, left, left_weight, total, total_weight):
        return (
            self._variances(left, left_weight),
            self._variances(total - left, total_weight - left_weight),
        )

    def extra_gain(self, left, left_weight, total, total_weight):
        return np.zeros(len(left))

    def _variances(self, sums, weight):
        n = len(self.quadrature)
        means = sums[:, : 2 * n] / np.asarray(weight)[:, None]
        return means[:, n:] - means[:, :n] ** 2


def spreading():
    """Rows whose mean is the same everywhere, and whose spread jumps at 30."""
    rng = np.random.default_rng(0)
    x = np.arange(80.0)
    y = rng.choice([-1.0, 1.0], size=(80, 2)) * np.where(x > 30, 5.0, 1.0)[:, None]
    return x[:, None], y


def grown(statistic, **parameters):
    settings = {"n_trees": 1, "honesty": "none", "max_depth": 1, "sample_fraction": 0.999}
    settings |= {"min_node_size": 5, "random_state": 0}
    return CurveForest(statistic=statistic, **{**settings, **parameters}).fit(*spreading())


def test_a_tree_splits_where_the_spread_jumps():
    forest = grown(SplitBySpreads())
    assert forest.forest_.nodes["threshold"][0] == pytest.approx(30.5, abs=1.0)  # a bin


def test_a_line_of_the_table_gives_it_a_name_and_a_file_holds_the_forest(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=r"'statistic' parameter.*'ratios'.*Got 'spreads'"):
        grown("spreads")
    monkeypatch.setitem(SPLIT_STATISTICS, "spreads", SplitBySpreads)
    named = grown("spreads", n_trees=5, max_depth=None)
    x, _ = spreading()
    given = grown(SplitBySpreads(), n_trees=5, max_depth=None)
    np.testing.assert_array_equal(named.predict(x), given.predict(x))
    named.save(tmp_path / "forest.dose")
    again = load_forest(tmp_path / "forest.dose")
    np.testing.assert_array_equal(again.predict(x), named.predict(x))


def test_the_names_of_the_library_are_its_recipes():
    by_name, by_object = (grown(own) for own in ("means", SPLIT_STATISTICS["means"]()))
    assert by_name.forest_.nodes.tobytes() == by_object.forest_.nodes.tobytes()


def test_categories_are_split_by_it_too():
    x, y = spreading()
    codes = (x[:, 0] > 30) * 2.0 + np.arange(80) % 2
    forest = CurveForest(
        1, statistic=SplitBySpreads(), honesty="none", max_depth=1, sample_fraction=0.999,
        min_node_size=5, categorical_features=[0], random_state=0,
    ).fit(codes[:, None], y)  # fmt: skip
    leaves = forest.apply(np.arange(4.0)[:, None])[:, 0]
    assert leaves[0] == leaves[1] != leaves[2]
    assert leaves[2] == leaves[3]


@pytest.mark.parametrize("correction", [Stabilized, PublishedKernel])
def test_forests_of_a_kernel_correction_grow_by_it(correction, monkeypatch):
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(240, 2)), rng.uniform(0, 4, size=240)
    y = 4 * dose * (x[:, 1] > 0) + rng.normal(size=240)  # a line of both is far off

    def answers(statistic):
        forest = GeneralizedCausalForest(
            40, correction=correction(statistic=statistic), outcome_model=LinearRegression(),
            density="gaussian", baseline=1.0, random_state=0,
        )  # fmt: skip
        return forest.fit(x, y, treatment=dose).effect(x, 3.0)

    by_object = answers(SplitBySpreads())
    assert not np.array_equal(by_object, answers(None))
    monkeypatch.setitem(SPLIT_STATISTICS, "spreads", SplitBySpreads)
    np.testing.assert_array_equal(answers("spreads"), by_object)


def test_a_cluster_has_no_parameter_for_it():
    params = pytest.importorskip("doseforest.spark.params", exc_type=ImportError)
    assert "statistic" not in {**params.TRAINING, **params.INPUTS}
