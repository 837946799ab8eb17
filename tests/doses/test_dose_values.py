"""Doses: one type for numbers and for several components, with the shape of the array it holds."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from doseforest.doses.curve_effects import dose_table, one_dose, unit_doses
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.doses.grids import DoseRange, check_doses, given_doses

RANDOM = np.random.default_rng(0)
TABLES = {
    "numbers": RANDOM.integers(0, 3, (40, 1)).astype(np.float64),
    "two components": RANDOM.integers(0, 3, (40, 2)).astype(np.float64),
    "three components": RANDOM.integers(0, 3, (40, 3)).astype(np.float64),
}
each_kind = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())


@each_kind
def test_a_table_of_components_comes_back_as_it_was(table):
    doses = Doses.of_table(table)
    assert (doses.shape, doses.n_components) == ((len(table),), table.shape[1])
    assert doses.joint is (table.shape[1] > 1)
    np.testing.assert_array_equal(doses.table, table)
    np.testing.assert_array_equal(doses.columns, table.T)
    np.testing.assert_array_equal(given_doses(doses.plain), doses)


@each_kind
def test_shapes_are_those_of_the_array_whatever_a_dose_is_made_of(table):
    doses = Doses.of_table(table.reshape(8, 5, -1))
    assert doses.shape == (8, 5)
    assert doses.table.shape == (8, 5, table.shape[1])
    assert doses[2:4, 0].shape == (2,)
    np.testing.assert_array_equal(doses[3, 1].table, table.reshape(8, 5, -1)[3, 1])
    assert [part.shape for part in doses] == [(5,)] * 8


@each_kind
def test_distinct_doses_ascend_by_their_components(table):
    np.testing.assert_array_equal(Doses.of_table(table).distinct.table, np.unique(table, axis=0))


@each_kind
def test_doses_are_compared_one_by_one(table):
    doses, first = Doses.of_table(table), Doses.of_table(table)[0]
    same = (table == table[0]).all(axis=1)
    np.testing.assert_array_equal(doses == first, same)
    np.testing.assert_array_equal(doses != first, ~same)
    np.testing.assert_array_equal(doses[same].distinct.table, table[:1])


@each_kind
def test_doses_stand_side_by_side(table):
    doses = Doses.of_table(table)
    both = Doses.stack([doses, doses[::-1]])
    np.testing.assert_array_equal(both.table, np.stack([table, table[::-1]], axis=1))


@each_kind
def test_one_component_moves_and_the_others_stay(table):
    last = table.shape[1] - 1
    expected = table.copy()
    expected[:, last] += 0.5
    doses = Doses.of_table(table)
    np.testing.assert_array_equal(doses.moved(last, 0.5).table, expected)
    np.testing.assert_array_equal(doses.table, table)  # as they were


@each_kind
def test_they_are_frozen_and_can_be_pickled(table):
    doses = Doses.of_table(table)
    with pytest.raises(FrozenInstanceError):
        doses.values = table
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(doses)), doses)


def test_numbers_are_not_copied():
    numbers = RANDOM.random(5)
    doses = Doses.of(numbers)
    assert doses.values is numbers
    assert Doses.of(doses) is doses
    for view in (doses.table, doses.plain, np.asarray(doses), doses.axis):
        assert np.shares_memory(view, numbers)


def test_only_doses_of_one_component_are_an_axis():
    assert Doses.of_table(np.zeros((2, 2))).axis is None


def test_every_combination_of_values_is_there_once():
    doses = Doses.product([np.array([0.0, 1.0]), np.array([2.0, 3.0, 4.0])])
    expected = [[a, b] for a in (0.0, 1.0) for b in (2.0, 3.0, 4.0)]
    assert doses.plain.tolist() == expected


def test_one_dose_is_plain_values_an_element_and_a_text():
    number, pair = one_dose(5, "dose"), one_dose([5, 0.25], "dose", 2)
    assert (number.shape, pair.shape) == ((), ())
    assert (number.plain, pair.plain) == (5.0, [5.0, 0.25])
    assert (number.element, pair.element.item()) == (5.0, (5.0, 0.25))
    assert (dose_text(number), dose_text(pair)) == ("5", "(5, 0.25)")


@pytest.mark.parametrize(("asked", "width"), [(2.0, 1), ([2.0, 1.0], 2)])
def test_what_was_checked_is_taken_again_as_doses_or_as_their_array(asked, width):
    once = unit_doses(asked, 3, "dose", width)
    for again in (once, once.values):
        np.testing.assert_array_equal(unit_doses(again, 3, "dose", width), once)
    table = dose_table(once[:, None], 3, n_components=width)
    np.testing.assert_array_equal(table, once[:, None])
    assert one_dose(once[0], "dose", width) == once[0]


def test_negative_zero_is_zero_in_checked_doses():
    for doses in (dose_table([-0.0, 1.0], 1), check_doses([-0.0, 1.0], DoseRange(0.0, 1.0))):
        assert not np.signbit(doses.values).any()
    assert not np.signbit(dose_table([[-0.0, 1.0]], 1, n_components=2).table).any()
