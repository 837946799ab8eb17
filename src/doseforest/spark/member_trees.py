"""Fitted regressors of Spark ML and of xgboost.spark, read into tree ensembles.

Executors score them in Python and a forest file holds them: neither needs the library that made
them. Missing values were filled with a number below all others when the regressor was fitted, so a
split sends them where it sends that number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.nuisance.outcome.plain_trees import PlainTree, ensemble_from_trees
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble

TREE = re.compile(r"\s*Tree \d+ \(weight (\S+)\):")
SPLIT = re.compile(r"\s*If \(feature (\d+) <= (\S+)\)")
LEAF = re.compile(r"\s*Predict: (\S+)")


def read_member(model: Any, fill: FloatArray) -> TreeEnsemble:
    """The trees of a fitted regressor of covariates and, last, the dose.

    Parameters
    ----------
    fill : array of shape (n_features,)
        What missing values of each covariate were filled with.
    """
    return READERS[type(model).__name__](model, fill)


def trees_of_text(text: str, fill: FloatArray) -> list[tuple[float, PlainTree]]:
    """Weights and trees of the `toDebugString` of a model of Spark ML.

    Examples
    --------
    >>> text = '''A model
    ...   Tree 0 (weight 0.5):
    ...     If (feature 0 <= 2.5)
    ...      Predict: 1.0
    ...     Else (feature 0 > 2.5)
    ...      Predict: 4.0'''
    >>> [(weight, tree)] = trees_of_text(text, np.array([-9.0]))
    >>> weight, tree.threshold, tree.missing_left, tree.values
    (0.5, [2.5], [True], [1.0, 4.0])
    """
    reader = _TextReader(np.append(fill, np.inf))  # a dose is never missing
    for line in text.splitlines():
        reader.read(line)
    return reader.trees


class _TextReader:
    """Reads lines of a tree, parents before their children."""

    def __init__(self, fill: FloatArray) -> None:
        self.trees: list[tuple[float, PlainTree]] = []
        self._fill = fill
        self._open: list[tuple[int, bool]] = []  # splits, and whether their right child comes next

    def read(self, line: str) -> None:
        if matched := TREE.match(line):
            self.trees.append((float(matched[1]), PlainTree()))
        elif matched := SPLIT.match(line):
            feature, threshold = int(matched[1]), float(matched[2])
            missing_left = bool(self._fill[feature] <= threshold)
            split = self._tree.add_split(feature, threshold, missing_left)
            self._attach(split)
            self._open.append((split, False))
        elif matched := LEAF.match(line):
            self._attach(self._tree.add_leaf(float(matched[1])))
        elif line.lstrip().startswith("Else"):
            self._open[-1] = (self._open[-1][0], True)

    @property
    def _tree(self) -> PlainTree:
        if not self.trees:  # a lone tree has no title
            self.trees.append((1.0, PlainTree()))
        return self.trees[-1][1]

    def _attach(self, child: int) -> None:
        if not self._open:
            return  # the root
        split, right = self._open[-1]
        (self._tree.right if right else self._tree.left)[split] = child
        if right:
            self._open.pop()


def _scaled(trees: list[tuple[float, PlainTree]], share: float) -> list[PlainTree]:
    return [
        replace(tree, values=[share * weight * value for value in tree.values])
        for weight, tree in trees
    ]


def _read_sum(model: Any, fill: FloatArray) -> TreeEnsemble:
    trees = trees_of_text(model.toDebugString, fill)
    return ensemble_from_trees(_scaled(trees, 1.0), len(fill))


def _read_mean(model: Any, fill: FloatArray) -> TreeEnsemble:
    trees = trees_of_text(model.toDebugString, fill)
    return ensemble_from_trees(_scaled(trees, 1.0 / len(trees)), len(fill))


def _read_xgboost(model: Any, fill: FloatArray) -> TreeEnsemble:
    booster = model.get_booster()
    booster.feature_names = None
    trees = [xgboost_tree(json.loads(text), fill) for text in booster.get_dump(dump_format="json")]
    ensemble = ensemble_from_trees(trees, len(fill))
    row = np.append(fill, 0.0)[None]
    known = float(booster.inplace_predict(row, predict_type="margin")[0])
    level = known - float(ensemble.predict(row[:, :-1], row[:, -1])[0])  # it has a base score
    first = replace(trees[0], values=[value + level for value in trees[0].values])
    return ensemble_from_trees([first, *trees[1:]], len(fill))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node of a tree in JSON belongs."""

    node: dict[str, Any]
    parent: int | None = None
    right: bool = False


def xgboost_tree(root: dict[str, Any], fill: FloatArray) -> PlainTree:
    """A tree of XGBoost's JSON: a value below the threshold goes to "yes", in single precision.

    Examples
    --------
    >>> leaves = [{"nodeid": 1, "leaf": 1.0}, {"nodeid": 2, "leaf": 4.0}]
    >>> root = {"split": "f0", "split_condition": 2.0, "yes": 1, "no": 2, "children": leaves}
    >>> tree = xgboost_tree(root, np.array([0.0]))
    >>> tree.values, tree.missing_left, bool(1.999 < tree.threshold[0] < 2.0)
    ([1.0, 4.0], [True], True)
    """
    tree, waiting = PlainTree(), [_Place(root)]
    filled = np.append(fill, np.inf)
    while waiting:
        place = waiting.pop()
        node = place.node
        if "leaf" in node:
            number = tree.add_leaf(float(node["leaf"]))
        else:
            feature, threshold = int(node["split"][1:]), last_below(node["split_condition"])
            number = tree.add_split(feature, threshold, bool(filled[feature] <= threshold))
            children = {child["nodeid"]: child for child in node["children"]}
            waiting.append(_Place(children[node["no"]], number, right=True))
            waiting.append(_Place(children[node["yes"]], number))
        if place.parent is not None:
            (tree.right if place.right else tree.left)[place.parent] = number
    return tree


def last_below(threshold: float) -> float:
    """The largest number that is below a threshold once both are in single precision.

    >>> last_below(1.0) < 1.0, np.float32(last_below(1.0)) < np.float32(1.0)
    (True, np.True_)
    """
    single = np.float32(threshold)
    below = np.nextafter(single, np.float32(-np.inf))
    middle = (float(single) + float(below)) / 2  # rounds to the one of the two that is even
    return middle if np.float32(middle) == below else float(np.nextafter(middle, -np.inf))


READERS: dict[str, Callable[[Any, FloatArray], TreeEnsemble]] = {
    "DecisionTreeRegressionModel": _read_sum,
    "RandomForestRegressionModel": _read_mean,
    "GBTRegressionModel": _read_sum,
    "SparkXGBRegressorModel": _read_xgboost,
}
REGRESSORS = ("DecisionTreeRegressor", "RandomForestRegressor", "GBTRegressor", "SparkXGBRegressor")
