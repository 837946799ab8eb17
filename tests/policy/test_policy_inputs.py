"""What cannot be decided on is refused, with parameter, rule and value."""

import numpy as np
import pytest

from doseforest.policy import budget_path, optimize_doses

VALUE = np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 3.0]])
COST = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
CELLS = {"cells": [0, 1], "supply": [9, 9], "demand": COST}


def changed(matrix, entry):
    copy = matrix.copy()
    copy[1, 2] = entry
    return copy


BAD = {
    "a vector": ({"value": [1, 2]}, r"'value' .* shape \(units, doses\).* Got shape \(2,\)"),
    "no doses": ({"value": np.empty((2, 0))}, r"'value' .* Got shape \(2, 0\)"),
    "text": ({"value": [["a", "b"]]}, "'value' parameter must hold real numbers"),
    "NaN in value": ({"value": changed(VALUE, np.nan)}, "'value' .* Got nan for unit 1, dose 2"),
    "infinite value": ({"value": changed(VALUE, -np.inf)}, "'value' .* Got -inf for unit 1"),
    "NaN in cost": ({"cost": changed(COST, np.nan)}, "'cost' .* Got nan for unit 1, dose 2"),
    "infinite cost": ({"cost": changed(COST, np.inf)}, "'cost' .* Got inf for unit 1, dose 2"),
    "negative cost": (
        {"cost": changed(COST, -1.0)},
        "'cost' .* not be negative unless 'allow_negative_cost'.* Got -1.0 for unit 1, dose 2",
    ),
    "NaN in a price list": ({"cost": [0, 1, np.nan]}, "'cost' .* Got nan"),
    "costs of other units": ({"cost": COST[:1]}, r"'cost' .* \(2, 3\) .* Got shape \(1, 3\)"),
    "no cost": ({"cost": None, "budget": 1}, "'cost' .* together with 'budget'. Got None"),
    "NaN as budget": ({"budget": np.nan}, "'budget' parameter must be a number. Got nan"),
    "text as budget": ({"budget": "all"}, "'budget' parameter must be a number. Got 'all'"),
    "a negative budget": ({"budget": -1}, "'budget' .* at least 0.* Got -1 instead"),
    "two doses": ({"doses": [1, 2]}, r"'doses' .* 3 finite doses.* Got \[1, 2\]"),
    "an infinite dose": ({"doses": [1, 2, np.inf]}, "'doses' .* 3 finite doses"),
    "numbers as marks": ({"allowed": VALUE}, "'allowed' .* booleans .* Got float64"),
    "no dose allowed": (
        {"allowed": np.array([[True] * 3, [False] * 3])},
        "'allowed', 'min_dose' and 'max_dose' .* Got none for unit 1",
    ),
    "ends that cross": ({"min_dose": 2, "max_dose": 1}, "Got none for unit 0"),
    "three ends": ({"min_dose": [1, 1, 1]}, r"'min_dose' .* Got shape \(3,\)"),
    "NaN as an end": ({"max_dose": np.nan}, "'max_dose' .* with NaN"),
    "groups alone": ({"groups": [0, 1]}, "'group_budgets' .* together with 'groups'. Got None"),
    "budgets alone": ({"group_budgets": [1]}, "'groups' .* with 'group_budgets'. Got None"),
    "one group label": (
        {"groups": [0], "group_budgets": [1]},
        r"'groups' .* one label per unit \(2\).* Got shape \(1,\)",
    ),
    "a missing label": (
        {"groups": ["a", None], "group_budgets": {"a": 1}},
        "'groups' .* none of them missing",
    ),
    "a label without budget": (
        {"groups": ["a", "b"], "group_budgets": {"a": 1}},
        r"'group_budgets' .* Got none for 'b' \(1 such labels\)",
    ),
    "text with an array": (
        {"groups": ["a", "b"], "group_budgets": [1, 1]},
        "'group_budgets' .* dictionary .* Got list",
    ),
    "a place beyond the array": (
        {"groups": [0, 2], "group_budgets": [1, 1]},
        "'groups' .* places in 'group_budgets', 0 to 1. Got 0 to 2",
    ),
    "NaN as a group's budget": (
        {"groups": [0, 1], "group_budgets": [1, np.nan]},
        "'group_budgets' .* Got nan for 1",
    ),
    "text as a group's budget": (
        {"groups": [0, 1], "group_budgets": {0: 1, 1: "b"}},
        "'group_budgets' .* number. Got 'b'",
    ),
    "labels that have no order": (
        {"groups": ["a", 1], "group_budgets": {"a": 1, 1: 1}},
        "'groups' .* one sortable type",
    ),
    "a table of budgets": (
        {"groups": [0, 1], "group_budgets": [[1, 1]]},
        r"'group_budgets' .* Got shape \(1, 2\)",
    ),
    "no demand": ({**CELLS, "demand": None}, "'demand' .* must be given where 'cells'"),
    "no supply": ({**CELLS, "supply": None}, "'supply' .* together with 'cells'"),
    "no cells": ({**CELLS, "cells": None}, "'cells' .* together with 'supply'"),
    "negative demand": (
        {**CELLS, "demand": changed(COST, -0.5)},
        "'demand' .* not be negative. Got -0.5 for unit 1, dose 2",
    ),
    "NaN in demand": ({**CELLS, "demand": changed(COST, np.nan)}, "'demand' .* Got nan"),
    "no distinct dose": ({"max_distinct": 0}, "'max_distinct' .* at least 1. Got 0"),
    "half a dose": ({"max_distinct": 1.5}, "'max_distinct' .* whole number .* Got 1.5"),
    "another number of units": ({"n_units": 3}, r"'n_units' .* rows of 'value' \(2\). Got 3"),
    "a function of nobody knows whom": (
        {"value": lambda rows: VALUE[rows]},
        "'n_units' .* where 'value' is a function. Got None",
    ),
    "a function with too few rows": (
        {"value": lambda rows: VALUE[:1], "n_units": 2},
        r"'value' parameter must give 2 rows .* Got shape \(1, 3\)",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_named(what):
    change, message = BAD[what]
    with pytest.raises((ValueError, TypeError), match=message):
        optimize_doses(**{"value": VALUE, "cost": COST, **change})


def test_paths_and_tables_check_what_they_are_given():
    with pytest.raises(ValueError, match=r"'cost' .* Got nan"):
        budget_path(VALUE, changed(COST, np.nan))
    path = budget_path(VALUE, COST)
    with pytest.raises(ValueError, match=r"'budget' parameter must be a number. Got nan"):
        path.at(np.nan)
    with pytest.raises(ValueError, match=r"'segments' .* per unit \(2\). Got shape \(1,\)"):
        optimize_doses(VALUE).by_segment(["a"])
