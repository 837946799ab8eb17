"""The steps of a fit are functions of blocks: many blocks give what one gives."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from doseforest.data.row_blocks import LEAF_WEIGHTS, OneBlock, RowBlock
from doseforest.doses.bases.polynomials import Legendre
from doseforest.doses.bases.splines import Spline
from doseforest.doses.grids import DoseRange
from doseforest.doses.smoothing.local_polynomials import (
    local_moments,
    local_polynomials,
    local_windows,
    solve_moments,
)
from doseforest.estimator.corrections.dose_shapes import FUNCTIONS, measure_functions
from doseforest.estimator.corrections.orthogonal import RoundForests, fit_rounds
from doseforest.estimator.corrections.shape_stack import N_FOLDS, TARGET, stack_blocks
from doseforest.estimator.corrections.sieve_rows import (
    ADDED,
    CENTRED,
    CURVES,
    LEFT,
    SCORES,
    leaf_channels,
    measure_everyone,
)
from doseforest.nuisance.outcome.covariate_terms import fit_covariate_terms
from doseforest.nuisance.outcome.knot_search import knot_edges
from doseforest.nuisance.outcome.spline_core import choose_terms
from doseforest.nuisance.outcome.spline_design import SplineDesign
from doseforest.nuisance.treatment.conditional_means import fit_shrinkage
from doseforest.nuisance.treatment.location_scale import standardise
from doseforest.nuisance.treatment.treatment_weights import fold_densities
from many_blocks import ManyBlocks

N, FOLDS = 600, 3


def rows(*, grouped=False, weighted=True, some_grow=False):
    rng = np.random.default_rng(5)
    X, dose = rng.normal(size=(N, 2)), rng.uniform(-1, 1, size=N)
    y = X[:, 0] + dose * (1 + 2 * (X[:, 1] > 0)) + 0.3 * rng.normal(size=N)
    functions = Legendre(3).fit(dose).evaluate(dose)[:, 1:]
    columns = {
        FUNCTIONS: functions,
        CENTRED: functions - 0.1 * X[:, :1],
        CURVES: rng.normal(size=functions.shape),
        LEFT: y - X[:, 0],
        ADDED: np.zeros(functions.shape),
    }
    weights = rng.uniform(0.5, 1.5, N) if weighted else None
    if some_grow:
        columns[LEAF_WEIGHTS] = np.where(np.arange(N) % 2, 0.0, 1.0 if weights is None else weights)
    ids = rng.integers(0, 80, N) if grouped else np.arange(N)
    return RowBlock(X, dose, y, weights, ids, ids % FOLDS, columns)


class Work:
    """Means of nothing, and for a forest the mean of the leaf channels of everyone."""

    def __init__(self, blocks):
        self.blocks = blocks

    def means(self, targets):
        return lambda block: 0.1 * targets(block)

    def grow(self, number, scores):
        everyone = measure_everyone(self.blocks).channels

        def out_of_bag(block, place):
            return (1 + np.sin(block.X[:, 1:])) * everyone + 0.1 * np.cos(place + number)

        return RoundForests(("first", "second"), (5, 50), (20.0, 90.0), out_of_bag)

    def stack(self):
        return stack_blocks(self.blocks, lambda block: block.ids % N_FOLDS)


KINDS = [{}, {"grouped": True}, {"weighted": False}, {"some_grow": True, "grouped": True}]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rounds_of_many_blocks_are_those_of_one(kind):
    block = rows(**kind)
    answers = []
    for blocks in (OneBlock(block, FOLDS), ManyBlocks.split(block, FOLDS)):
        rounds = fit_rounds(blocks, Work(blocks), n_rounds=2, orders=None)
        parts = blocks.blocks if isinstance(blocks, ManyBlocks) else [blocks.block]
        added = np.empty(block[ADDED].shape)
        for part in parts:
            for place, x in zip(part[ADDED], part.X, strict=True):
                added[np.flatnonzero(block.X[:, 0] == x[0])] = place
        answers.append((rounds, added))
    (one, one_added), (many, many_added) = answers
    assert np.abs(one_added).max() > 0.1  # or nothing is compared
    np.testing.assert_allclose(many_added, one_added, atol=1e-9)
    for first, second in zip(one, many, strict=True):
        assert first.names == second.names
        np.testing.assert_allclose(second.constant, first.constant, atol=1e-9)
        np.testing.assert_allclose(second.stack.shares, first.stack.shares, atol=1e-9)
        assert second.stack.t_value == pytest.approx(first.stack.t_value)
        assert second.stack.corrected_risk == pytest.approx(first.stack.corrected_risk)
        assert second.stack.corrected_risk <= second.stack.risk


def test_a_row_and_its_group_are_not_among_everyone_else():
    block = rows(grouped=True)
    block = block.with_columns({TARGET: block[LEFT], SCORES: block[CURVES]})
    everyone = measure_everyone(ManyBlocks.split(block, FOLDS))
    channels = leaf_channels(block)
    without = everyone.without(block)
    for row in (0, 7, 300):
        others = block.ids != block.ids[row]
        expected = np.average(channels[others], axis=0, weights=block.weights[others])
        np.testing.assert_allclose(without[row], expected)


def test_dual_functions_have_coefficients_as_their_products_with_curves():
    block = rows()
    shape, duals = measure_functions(ManyBlocks.split(block, FOLDS), None)
    assert (shape.n_indicators, shape.orders.tolist()) == (0, [1, 2])
    coefficients = np.array([1.0, -2.0])
    curve = 7.0 + block[FUNCTIONS] @ coefficients
    products = duals.of(block[FUNCTIONS]) * curve[:, None]
    np.testing.assert_allclose(np.average(products, axis=0, weights=block.weights), coefficients)


@pytest.mark.parametrize("without_folds", [False, True])
def test_a_spline_core_of_many_blocks_is_that_of_one(without_folds):
    block = rows()
    terms = fit_covariate_terms(block.X)
    basis = Spline().fit(block.dose, block.weights)
    knots = [knot_edges(column) for column in terms.standardised(block.X).T]
    design = SplineDesign(block.X, block.dose, terms, basis)
    one, many = (
        choose_terms(blocks, design, knots, 0.5, without_folds=without_folds)
        for blocks in (OneBlock(block, FOLDS), ManyBlocks.split(block, FOLDS))
    )
    assert len(one) == len(many) == (FOLDS + 1 if without_folds else 1)
    for first, second in zip(one, many, strict=True):
        expected = first.core(0.5).predict(block.X, block.dose)
        np.testing.assert_allclose(second.core(0.5).predict(block.X, block.dose), expected)


def test_means_of_many_blocks_are_shrunk_as_those_of_one():
    block = rows()
    predicted = 3.0 + np.column_stack([0.5 * block.X[:, 0], block.X[:, 1]])
    targets = np.column_stack([block.y, block.X[:, 0]])
    block = block.with_columns({"predicted": predicted, "targets": targets})
    one, many = (
        fit_shrinkage(
            blocks, "slopes", lambda own: (own["predicted"], own["targets"], own.row_weights)
        )
        for blocks in (OneBlock(block, FOLDS), ManyBlocks.split(block, FOLDS))
    )
    covariance = np.cov(predicted[:, 0], block.y, aweights=block.weights)
    assert one.slope[0] == pytest.approx(min(1.0, covariance[0, 1] / covariance[0, 0]))
    assert one.mean[0] == pytest.approx(np.average(block.y, weights=block.weights))
    np.testing.assert_allclose(many.shrunk(predicted), one.shrunk(predicted))


def test_a_dose_is_standardised_in_many_blocks_as_in_one():
    block = rows()
    spread = np.exp(0.5 * block.X[:, 1])
    dose = block.X[:, 0] + spread * np.random.default_rng(1).normal(size=N)
    block = replace(block, dose=dose)
    answers = []
    for blocks in (OneBlock(block, FOLDS), ManyBlocks.split(block, FOLDS)):

        def fit_mean(targets, column, blocks=blocks):
            """A line in the covariates, the same for all folds."""

            def products(own):
                wide = np.column_stack([np.ones(len(own)), own.X])
                return wide.T @ wide, wide.T @ targets(own)

            line = np.linalg.solve(*blocks.add_up("a line", products))
            blocks.add(column, lambda own: {column: line[0] + own.X @ line[1:]})
            return SimpleNamespace(level=line[0], line=line)

        location, log_scale, residuals = standardise(
            blocks,
            DoseRange(dose.min(), dose.max()),
            lambda own: own.dose,
            lambda own: own.row_weights,
            fit_mean,
        )
        parts = blocks.blocks if isinstance(blocks, ManyBlocks) else [blocks.block]
        z = np.sort(np.concatenate([residuals(part) for part in parts]))
        answers.append((location.line, log_scale.line, z))
    for first, second in zip(*answers, strict=True):
        np.testing.assert_allclose(second, first, atol=1e-9)
    # Slopes of the mean and of the log of the spread, with errors of about 0.05 and 0.03.
    assert answers[0][0][1] == pytest.approx(1.0, abs=0.2)
    assert answers[0][1][2] == pytest.approx(0.5, abs=0.15)


def test_mean_densities_of_many_blocks_are_those_of_one():
    block, doses = rows(), np.array([-0.5, 0.0, 0.5])

    def density(own, fold, at):
        return np.exp(-((at - own.X[:, :1]) ** 2)) * (1 + fold)

    for blocks in (OneBlock(block, FOLDS), ManyBlocks.split(block, FOLDS)):
        means, weight = fold_densities(blocks, doses, density, range(FOLDS))
        for fold in range(FOLDS):
            mine = block.take(block.folds == fold)
            assert weight[fold] == pytest.approx(mine.weights.sum())
            expected = np.average(density(mine, fold, doses), axis=0, weights=mine.weights)
            np.testing.assert_allclose(means[fold], expected)


@pytest.mark.parametrize("degree", [0, 2])
def test_local_polynomials_of_many_blocks_are_those_of_one(degree):
    block, doses = rows(), np.array([-1.0, 0.0, 0.4])
    window = local_windows(doses, 0.4, "epanechnikov", (block.dose.min(), block.dose.max()))

    def moments(own):
        return local_moments(own.dose, own.y, own.row_weights, window, degree)

    fits = solve_moments(window, *ManyBlocks.split(block, FOLDS).add_up("", moments), degree)
    one = local_polynomials(
        block.dose, block.y, doses, 0.4, "epanechnikov", block.weights, degree=degree
    )
    np.testing.assert_allclose(fits.values, one.values)
    influence = fits.influence(block.dose, block.y, block.weights, N)
    np.testing.assert_allclose(influence - influence.mean(axis=0), one.influence, atol=1e-9)


def test_a_dose_that_no_row_is_near_gets_no_polynomial():
    window = local_windows(np.array([0.0, 9.0]), 0.5, "epanechnikov", (-9.0, 9.0))
    dose, y, ones = np.array([-0.1, 0.1, 0.2]), np.array([1.0, 1.0, 1.0]), np.ones(3)
    fits = solve_moments(window, *local_moments(dose, y, ones, window, 2), 2)
    np.testing.assert_allclose(fits.values, [1.0, 0.0])
    assert not fits.influence(dose, y, ones, 3)[:, 1].any()
