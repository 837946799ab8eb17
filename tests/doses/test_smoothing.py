"""Smoothing: closed forms are the integrals they stand for, weights are the fits they stand for."""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from doseforest.doses.smoothing import kernel_weights
from doseforest.doses.smoothing.bandwidths import (
    BandwidthChoice,
    canonical_bandwidth,
    loo_bandwidth,
    rule_of_thumb,
)
from doseforest.doses.smoothing.boundary import (
    edge_bandwidths,
    local_constant_weights,
    local_linear_weights,
    normalised_kernel,
)
from doseforest.doses.smoothing.kernel_weights import (
    effective_sample,
    scaled_derivative,
    scaled_kernel,
)
from doseforest.doses.smoothing.kernels import KERNELS, ExactMatchKernel, Kernel
from doseforest.doses.smoothing.smoother_inputs import given_bandwidth

Floats = NDArray[np.float64]

DENSITIES = [name for name, kernel in KERNELS.items() if kernel.is_density]
SMOOTH = [name for name, kernel in KERNELS.items() if kernel.differentiable]
every_density = pytest.mark.parametrize("name", DENSITIES)
every_smooth_kernel = pytest.mark.parametrize("name", SMOOTH)
with_and_without_weights = pytest.mark.parametrize("weighted", [False, True])


@dataclass(frozen=True)
class TriangularKernel:
    """A kernel that the library does not have, with just the members of Kernel."""

    name: str = "triangular"
    support: float = 1.0
    second_moment: float = 1 / 6
    roughness: float = 2 / 3
    is_density: bool = True
    differentiable: bool = False

    def value(self, u: Floats) -> Floats:
        return np.where(np.abs(u) < 1, 1 - np.abs(u), 0.0)

    def derivative(self, u: Floats) -> Floats:
        raise ValueError("The triangular kernel has a kink.")

    def mass(self, low: Floats, high: Floats) -> Floats:
        def below(u: Floats) -> Floats:
            inside = np.clip(u, -1, 1)
            return np.asarray(0.5 + inside - np.sign(inside) * inside**2 / 2)

        return below(high) - below(low)


def integral(function: Callable[[float], float], low: float, high: float) -> float:
    """Integrate piece by piece, so that no kernel's end falls inside a piece."""
    ends = [low, *(end for end in (-1.0, 0.0, 1.0) if low < end < high), high]
    return float(sum(integrate.quad(function, *piece, epsabs=1e-13)[0] for piece in pairwise(ends)))


def at(function: Callable[[Floats], Floats], u: float) -> float:
    return float(function(np.array([u]))[0])


def skewed_sample(n: int = 300, seed: int = 1) -> tuple[Floats, Floats]:
    """Doses and row weights without any symmetry."""
    rng = np.random.default_rng(seed)
    return 10 * rng.beta(1.2, 3, n), rng.gamma(1.5, size=n)


def midpoints(n: int) -> Floats:
    """Doses whose mean is an integral over [0, 1], nearly."""
    return (np.arange(n) + 0.5) / n


# --- kernels -----------------------------------------------------------------------------------


@every_density
def test_a_kernel_integrates_to_one_and_has_the_moments_it_states(name: str) -> None:
    kernel = KERNELS[name]
    end = min(kernel.support, 12.0)
    assert integral(lambda u: at(kernel.value, u), -end, end) == pytest.approx(1)
    second = integral(lambda u: u**2 * at(kernel.value, u), -end, end)
    assert second == pytest.approx(kernel.second_moment)
    square = integral(lambda u: at(kernel.value, u) ** 2, -end, end)
    assert square == pytest.approx(kernel.roughness)


@every_density
@pytest.mark.parametrize(
    ("low", "high"), [(-0.3, 0.8), (-5.0, 0.2), (0.1, 0.11), (-1.0, 1.0), (0.9, 4.0), (2.0, 3.0)]
)
def test_the_mass_of_an_interval_is_the_integral_over_it(
    name: str, low: float, high: float
) -> None:
    kernel = KERNELS[name]
    expected = integral(lambda u: at(kernel.value, u), low, high)
    assert kernel.mass(np.array([low]), np.array([high]))[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_masses_of_adjoining_intervals_sum_to_the_mass_of_all(name: str) -> None:
    ends = np.array([-np.inf, -2.2, -1.0, -0.4, 0.3, 0.31, 1.0, 7.0, np.inf])
    masses = KERNELS[name].mass(ends[:-1], ends[1:])
    assert (masses >= 0).all()
    assert masses.sum() == pytest.approx(1)


def test_the_mass_of_a_gaussian_keeps_its_digits_in_both_tails() -> None:
    expected = stats.norm.sf(9.0) - stats.norm.sf(9.5)
    for low, high in [(9.0, 9.5), (-9.5, -9.0)]:
        mass = KERNELS["gaussian"].mass(np.array([low]), np.array([high]))[0]
        assert mass == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_symmetric_and_zero_outside_its_support(name: str) -> None:
    kernel = KERNELS[name]
    u = np.linspace(0, 3, 61)
    assert (kernel.value(u) == kernel.value(-u)).all()
    assert (kernel.value(u[u > kernel.support]) == 0).all()
    assert (kernel.value(u[u < kernel.support]) > 0).all()


@pytest.mark.parametrize(
    ("name", "height", "roughness"),
    [
        ("uniform", 1 / 2, 1 / 2),
        ("epanechnikov", 3 / 4, 3 / 5),
        ("biweight", 15 / 16, 5 / 7),
        ("triweight", 35 / 32, 350 / 429),
        ("gaussian", 0.3989422804014327, 0.28209479177387814),
    ],
)
def test_kernels_have_the_constants_of_the_textbooks(
    name: str, height: float, roughness: float
) -> None:
    assert at(KERNELS[name].value, 0.0) == pytest.approx(height, rel=1e-14)
    assert KERNELS[name].roughness == pytest.approx(roughness, rel=1e-14)


@every_smooth_kernel
def test_a_derivative_is_the_limit_of_differences(name: str) -> None:
    kernel, step = KERNELS[name], 1e-5
    u = np.linspace(-1.5, 1.5, 401)  # the ends of the support are among them
    difference = (kernel.value(u + step) - kernel.value(u - step)) / (2 * step)
    np.testing.assert_allclose(kernel.derivative(u), difference, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in SMOOTH])
def test_a_kernel_without_a_derivative_says_which_have_one(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"'kernel' .* 'gaussian', 'biweight', 'triweight'.* Got '{name}'"
    ):
        KERNELS[name].derivative(np.zeros(1))


def test_the_smooth_kernels_are_the_gaussian_the_biweight_and_the_triweight() -> None:
    assert SMOOTH == ["gaussian", "biweight", "triweight"]


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_frozen_and_called_by_their_name(name: str) -> None:
    kernel: Any = KERNELS[name]
    assert kernel.name == name
    with pytest.raises((AttributeError, TypeError)):
        kernel.name = "another"


# --- kernel weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_scaled_kernels_are_what_two_loops_give(name: str) -> None:
    dose, grid = np.array([0.0, 0.4, 1.0, 2.5]), np.array([0.0, 1.0, 2.0])
    bandwidths = np.array([0.5, 1.0, 2.0])
    weights = scaled_kernel(dose, grid, bandwidths, name)
    assert weights.dtype == np.float32
    for row, own in enumerate(dose):
        for place, (t, h) in enumerate(zip(grid, bandwidths, strict=True)):
            unit = 1.0 if name == "exact" else h
            expected = at(KERNELS[name].value, (own - t) / h) / unit
            assert weights[row, place] == np.float32(expected)


@every_smooth_kernel
def test_scaled_derivatives_are_slopes_in_the_dose_asked_for(name: str) -> None:
    dose, grid, step = skewed_sample(20)[0], np.linspace(0.0, 9.0, 7), 1e-3
    bandwidths = np.linspace(1.0, 2.0, 7)
    above = scaled_kernel(dose, grid + step, bandwidths, name).astype(np.float64)
    below = scaled_kernel(dose, grid - step, bandwidths, name).astype(np.float64)
    slopes = scaled_derivative(dose, grid, bandwidths, name)
    np.testing.assert_allclose(slopes, (above - below) / (2 * step), atol=2e-3)
    assert np.abs(slopes).max() > 0.1


def test_an_exact_match_counts_rows_whatever_the_bandwidth() -> None:
    for bandwidth in (1e-18, 0.1, 1e18):
        counts = scaled_kernel([0.0, 0.1, 0.1, 3.0], [0.1, 0.2], bandwidth, "exact").sum(axis=0)
        assert counts.tolist() == [2.0, 0.0]


def test_blocks_of_rows_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    dose, row_weights = skewed_sample()
    grid = np.linspace(0, 9, 11)
    whole = scaled_kernel(dose, grid, 1.0, "triweight")
    lines = local_linear_weights(dose, grid, 1.0, "gaussian", row_weights)
    sample = effective_sample(dose, grid, 1.0, "gaussian", row_weights)
    monkeypatch.setattr(kernel_weights, "BLOCK_BYTES", 10_000)
    assert scaled_kernel(dose, grid, 1.0, "triweight").tobytes() == whole.tobytes()
    np.testing.assert_allclose(
        local_linear_weights(dose, grid, 1.0, "gaussian", row_weights), lines, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        effective_sample(dose, grid, 1.0, "gaussian", row_weights), sample, rtol=1e-12
    )


@pytest.mark.parametrize("function", [scaled_kernel, scaled_derivative, local_linear_weights])
def test_temporaries_stay_below_64_megabytes(function: Callable[..., Any]) -> None:
    dose, grid = midpoints(200_000), np.linspace(0, 1, 21)
    tracemalloc.start()
    try:
        weights = function(dose, grid, 0.1, "triweight")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert weights.nbytes == 4 * weights.size
    assert peak - weights.nbytes < 64e6


def test_the_effective_sample_of_equal_weights_is_their_number() -> None:
    dose = np.array([0.0, 0.0, 0.2, 1.0, 5.0])
    sample = effective_sample(dose, [0.0, 3.0, 5.0], 0.5, "uniform")
    np.testing.assert_allclose(sample, [3.0, 0.0, 1.0])
    assert effective_sample(dose, [0.0, 0.2, 0.3], 1.0, "exact").tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize("name", KERNELS)
def test_the_effective_sample_is_the_squared_sum_over_the_sum_of_squares(name: str) -> None:
    dose, row_weights = skewed_sample(50)
    grid = dose[:5] + (0.0 if name == "exact" else 0.3)
    weights = scaled_kernel(dose, grid, 2.0, name).astype(np.float64) * row_weights[:, None]
    expected = weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0)
    sample = effective_sample(dose, grid, 2.0, name, row_weights)
    np.testing.assert_allclose(sample, expected, rtol=1e-5)
    np.testing.assert_allclose(
        effective_sample(dose, grid, 2.0, name, 1e-180 * row_weights), sample, rtol=1e-12
    )
    assert (sample <= len(dose)).all()


# --- the paper's normaliser --------------------------------------------------------------------


@every_density
@pytest.mark.parametrize("bandwidth", [0.2, 1.0, 30.0])
def test_the_papers_normaliser_gives_each_row_mass_one_on_the_support(
    name: str, bandwidth: float
) -> None:
    dose = np.array([0.0, 0.05, 3.0, 9.9, 10.0])
    grid = 10 * midpoints(40_000)
    mass = normalised_kernel(dose, grid, bandwidth, name).astype(np.float64).mean(axis=1) * 10
    # A uniform kernel may miss its end by half a step of the grid.
    np.testing.assert_allclose(mass, 1, atol=2e-3)


@every_density
def test_at_an_edge_a_flat_density_keeps_half_log_two_or_all_of_itself(name: str) -> None:
    # The expectations are int k, int k / (mass at T) and int k / (mass at t) over half a kernel;
    # the second is the integral of G' / G from u = 0 on, log 1 - log 1/2.
    dose, width = midpoints(20_000), 0.02
    plain = scaled_kernel(dose, [0.0], width, name).mean()
    paper = normalised_kernel(dose, [0.0], width, name, support=(0, 1)).mean()
    over_rows = normalised_kernel(dose, [0.0], width, name, support=(0, 1), over="rows").mean()
    np.testing.assert_allclose([plain, paper, over_rows], [0.5, np.log(2), 1.0], atol=2e-3)


@every_density
def test_normalised_over_rows_a_flat_density_is_unbiased_at_every_dose(name: str) -> None:
    grid = np.linspace(0, 1, 41)
    weights = normalised_kernel(midpoints(20_000), grid, 0.1, name, support=(0, 1), over="rows")
    np.testing.assert_allclose(weights.astype(np.float64).mean(axis=0), 1, atol=2e-3)


@pytest.mark.parametrize("over", ["grid", "rows"])
def test_far_from_the_edges_the_normaliser_changes_nothing(over: Any) -> None:
    dose, grid = np.array([0.0, 5.0, 10.0]), np.array([4.5, 5.5])
    plain = scaled_kernel(dose, grid, 2.0, "biweight")
    np.testing.assert_allclose(
        normalised_kernel(dose, grid, 2.0, "biweight", over=over), plain, rtol=1e-6
    )


# --- local lines -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DENSITIES, TriangularKernel()])
@with_and_without_weights
@pytest.mark.parametrize("edge_factor", [1.0, 2.0])
def test_local_lines_reproduce_every_linear_function_at_every_dose(
    name: str | Kernel, weighted: bool, edge_factor: float
) -> None:
    dose, row_weights = skewed_sample()
    grid = np.linspace(dose.min(), dose.max(), 23)
    weights = local_linear_weights(
        dose, grid, 2.5, name, row_weights if weighted else None, edge_factor=edge_factor
    ).astype(np.float64)
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=1e-6)
    for level, slope in [(0.0, 1.0), (-3.0, 2.0), (7.0, -0.4)]:
        fitted = weights.T @ (level + slope * dose) / len(dose)
        np.testing.assert_allclose(fitted, level + slope * grid, atol=1e-5)


@every_density
@with_and_without_weights
def test_local_lines_are_weighted_least_squares(name: str, weighted: bool) -> None:
    dose, row_weights = skewed_sample(80)
    row_weights = row_weights if weighted else np.ones(80)
    outcome = np.random.default_rng(2).normal(size=80)
    grid = np.linspace(dose.min(), dose.max(), 9)
    widths = edge_bandwidths(grid, 3.0, name, (dose.min(), dose.max()))
    fitted = local_linear_weights(dose, grid, 3.0, name, row_weights).T @ outcome / 80
    for place, (t, h) in enumerate(zip(grid, widths, strict=True)):
        root = np.sqrt(KERNELS[name].value((dose - t) / h) * row_weights)
        design = np.column_stack([np.ones(80), dose - t])
        line = np.linalg.lstsq(design * root[:, None], outcome * root, rcond=None)[0]
        assert fitted[place] == pytest.approx(line[0], abs=1e-5)


def test_local_linear_weights_are_the_printed_formula() -> None:
    dose, row_weights = skewed_sample(60)
    t, h = 1.0, 2.0
    kernel = KERNELS["epanechnikov"].value((dose - t) / h) * row_weights
    s0, s1, s2 = (np.sum(kernel * (dose - t) ** power) for power in range(3))
    expected = 60 * kernel * (s2 - s1 * (dose - t)) / (s0 * s2 - s1**2)
    weights = local_linear_weights(dose, [t], h, "epanechnikov", row_weights, edge_factor=1.0)
    np.testing.assert_allclose(weights[:, 0], expected, rtol=1e-5, atol=1e-6)


@every_density
def test_units_of_doses_and_weights_do_not_matter(name: str) -> None:
    dose, row_weights = skewed_sample(100)
    grid = np.linspace(0, 9, 5)
    weights = local_linear_weights(dose, grid, 3.0, name, row_weights)
    for unit in (2.0**-40, 2.0**40):
        scaled = local_linear_weights(
            unit * dose, unit * grid, unit * 3.0, name, row_weights / unit
        )
        assert scaled.tobytes() == weights.tobytes()


@with_and_without_weights
def test_too_few_distinct_doses_give_local_constants(weighted: bool) -> None:
    dose = np.repeat([0.0, 1.0, 2.0], [5, 3, 4])
    row_weights = np.arange(1.0, 13.0) if weighted else None
    grid = np.array([0.0, 0.2, 1.0, 1.9])  # each sees one level
    lines = local_linear_weights(dose, grid, 0.5, "biweight", row_weights, edge_factor=1.0)
    constants = local_constant_weights(dose, grid, 0.5, "biweight", row_weights)
    np.testing.assert_allclose(lines, constants, rtol=1e-6)


def test_an_exact_match_averages_the_rows_of_a_level() -> None:
    dose, outcome = np.array([0.0, 0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0, 7.0])
    weights = local_linear_weights(dose, [0.0, 1.0, 2.0], 1.0, "exact")
    np.testing.assert_allclose(weights.T @ outcome / 4, [2.0, 5.0, 7.0])


def test_no_line_is_drawn_to_a_dose_far_from_all_that_carry_it() -> None:
    dose = np.append(1.0 + 0.01 * midpoints(50), 9.0)
    far = local_linear_weights(dose, [0.5], 1.0, "epanechnikov", edge_factor=1.0)
    assert (far >= 0).all()  # a line through doses 170 deviations away would have either sign
    near = local_linear_weights(dose, [0.995], 1.0, "epanechnikov", edge_factor=1.0)
    assert near.min() < 0


def test_local_constants_are_kernels_over_their_mean() -> None:
    dose, row_weights = skewed_sample(70)
    kernel = scaled_kernel(dose, [1.0, 4.0], [1.0, 2.0], "gaussian") * row_weights[:, None]
    weights = local_constant_weights(dose, [1.0, 4.0], [1.0, 2.0], "gaussian", row_weights)
    np.testing.assert_allclose(weights, kernel / kernel.mean(axis=0), rtol=1e-5)


@every_density
def test_bandwidths_are_doubled_at_the_edges_only(name: str) -> None:
    grid = np.linspace(0, 10, 1001)
    widths = edge_bandwidths(grid, 0.8, name, (0.0, 10.0))
    reach = 2 * 0.8 if name == "gaussian" else 0.8
    inside = (grid >= reach) & (grid <= 10 - reach)
    assert widths[0] == widths[-1] == 1.6
    np.testing.assert_allclose(widths[inside], 0.8)
    assert (widths[~inside] > 0.8).all()
    assert np.abs(np.diff(widths)).max() <= 0.01 + 1e-12  # no steps
    if name != "gaussian":
        np.testing.assert_allclose((grid + widths)[grid <= 0.8], 1.6)


def test_outside_the_doses_the_bandwidth_is_that_of_the_edge() -> None:
    assert edge_bandwidths([-3.0, 12.0], 1.0, "uniform", (0.0, 10.0), 1.5).tolist() == [1.5, 1.5]
    assert edge_bandwidths([0.0], 1.0, "exact", (0.0, 10.0)).tolist() == [1.0]


def test_a_dose_that_no_row_reaches_is_refused_by_name() -> None:
    message = r"'grid' .* Got 5\.0, which has none within bandwidth 0\.5, instead"
    for function in (local_linear_weights, local_constant_weights):
        with pytest.raises(ValueError, match=message):
            function([0.0, 1.0, 10.0], [0.0, 5.0], 0.5, "uniform")
    with pytest.raises(ValueError, match="'grid'"):
        local_constant_weights([0.0, 1.0, 2.0], [2.0], 0.5, "uniform", weights=[1.0, 1.0, 0.0])


# --- bandwidths by rule of thumb ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("gaussian", 0.7764),
        ("uniform", 1.3510),
        ("epanechnikov", 1.7188),
        ("biweight", 2.0362),
        ("triweight", 2.3122),
    ],
)
def test_canonical_bandwidths_are_those_of_the_textbooks(name: str, factor: float) -> None:
    assert canonical_bandwidth(name) == pytest.approx(factor, abs=5e-5)


@every_density
@pytest.mark.parametrize("power", [1, 5])  # short tails: the deviation counts; long ones: quartiles
def test_the_rule_of_thumb_is_silvermans_in_the_kernels_own_scale(name: str, power: int) -> None:
    dose = skewed_sample(61)[0] ** power
    lower, upper = np.quantile(dose, [0.25, 0.75], method="hazen")
    assert (dose.std() < (upper - lower) / 1.34) == (power == 1)
    silverman = 0.9 * min(dose.std(), (upper - lower) / 1.34) * 61**-0.2
    expected = silverman * canonical_bandwidth(name) / canonical_bandwidth("gaussian")
    assert rule_of_thumb(dose, name) == pytest.approx(expected)


def test_the_rule_of_thumb_follows_the_unit_of_the_dose_and_not_its_origin() -> None:
    dose, row_weights = skewed_sample()
    bandwidth = rule_of_thumb(dose, "biweight", row_weights)
    assert rule_of_thumb(3 - 1e-6 * dose, "biweight", row_weights) == pytest.approx(
        1e-6 * bandwidth, rel=1e-6
    )


def test_equal_weights_are_none_and_rows_without_weight_are_absent() -> None:
    dose, row_weights = skewed_sample()
    assert rule_of_thumb(dose, "uniform", np.full(300, 7.0)) == pytest.approx(
        rule_of_thumb(dose, "uniform")
    )
    row_weights[::3] = 0
    present = row_weights > 0
    assert rule_of_thumb(dose, "uniform", row_weights) == pytest.approx(
        rule_of_thumb(dose[present], "uniform", row_weights[present])
    )


def test_doses_of_which_most_are_equal_still_get_a_bandwidth() -> None:
    dose = np.append(np.zeros(80), midpoints(20))
    expected = 0.9 * dose.std() * 100**-0.2
    assert rule_of_thumb(dose, "gaussian") == pytest.approx(expected)
    assert rule_of_thumb(dose, "exact") == 1.0


# --- bandwidths by leave-one-out ---------------------------------------------------------------


def naive_risk(
    dose: Floats, outcome: Floats, kernel: Kernel, bandwidth: float, weights: Floats, degree: int
) -> float:
    """Fit every row anew without itself, with an n by n kernel."""
    errors = np.empty(len(dose))
    for row in range(len(dose)):
        u = np.delete((dose - dose[row]) / bandwidth, row)
        others = np.delete(outcome, row)
        local = kernel.value(u) * np.delete(weights, row)
        if local.sum() == 0:
            errors[row] = outcome[row] - np.average(others, weights=np.delete(weights, row))
            continue
        mean = np.average(u, weights=local)
        variance = np.average((u - mean) ** 2, weights=local)
        predicted = np.average(others, weights=local)
        if degree == 1 and variance > 0 and mean**2 <= 100 * variance:
            predicted -= mean * np.average((u - mean) * others, weights=local) / variance
        errors[row] = outcome[row] - predicted
    return float(np.average(errors**2, weights=weights))


def noisy_curve(n: int, noise: float, seed: int = 3) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    # Without thin tails: whether a row has one neighbour or none is a jump that a lattice blurs.
    dose = 10 * rng.beta(1.2, 1.5, n)
    return dose, np.sin(dose) + 2 * dose + noise * rng.normal(size=n), rng.gamma(1.5, size=n)


@every_density
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_leave_one_out_risks_are_those_of_fitting_each_row_anew(
    name: str, degree: int, noise: float
) -> None:
    dose, outcome, row_weights = noisy_curve(120, noise)
    candidates = rule_of_thumb(dose, name) * np.array([0.4, 0.8, 1.6, 6.0])
    choice = loo_bandwidth(dose, outcome, name, candidates, row_weights, degree=degree)
    naive = [naive_risk(dose, outcome, KERNELS[name], h, row_weights, degree) for h in candidates]
    # A row at the very end of a uniform kernel is in or out: the lattice says "in part".
    np.testing.assert_allclose(choice.risks, naive, rtol=0.03 if name == "uniform" else 0.003)
    assert choice.bandwidth == candidates[np.argmin(naive)]


def test_a_row_that_outweighs_all_others_does_not_predict_itself() -> None:
    dose, outcome, row_weights = noisy_curve(120, 0.5)
    row_weights[60] = 1e5
    choice = loo_bandwidth(dose, outcome, "epanechnikov", [1.0, 2.0], row_weights)
    naive = [
        naive_risk(dose, outcome, KERNELS["epanechnikov"], h, row_weights, 1) for h in (1.0, 2.0)
    ]
    np.testing.assert_allclose(choice.risks, naive, rtol=0.01)


def test_a_kernel_of_ones_own_can_be_cross_validated() -> None:
    dose, outcome, row_weights = noisy_curve(150, 0.5)
    choice = loo_bandwidth(dose, outcome, TriangularKernel(), weights=row_weights)
    assert len(choice.candidates) == 21
    for h, risk in list(zip(choice.candidates, choice.risks, strict=True))[::5]:
        naive = naive_risk(dose, outcome, TriangularKernel(), h, row_weights, 1)
        assert risk == pytest.approx(naive, rel=0.005)


@every_density
def test_of_two_rows_each_is_predicted_by_the_other(name: str) -> None:
    for distance in np.random.default_rng(4).uniform(0, 0.9, 20):
        for degree in (0, 1):
            choice = loo_bandwidth([3, 3 + distance], [1.0, 5.0], name, [1.0], degree=degree)
            assert choice.risks[0] == pytest.approx(16.0)


def test_a_row_that_no_other_reaches_is_predicted_by_the_mean_of_the_others() -> None:
    choice = loo_bandwidth([0.0, 10.0, 20.0], [0.0, 6.0, 3.0], "epanechnikov", [1.0])
    assert choice.risks[0] == pytest.approx((4.5**2 + 4.5**2 + 0.0) / 3)


def test_local_lines_predict_a_line_without_error() -> None:
    dose, row_weights = skewed_sample()
    choice = loo_bandwidth(dose, 4 - 3 * dose, "gaussian", [1.0, 5.0], row_weights)
    assert choice.risks.max() < 1e-6 * np.var(3 * dose)  # the lattice's own error


def test_a_wiggly_curve_gets_a_smaller_bandwidth_than_a_noisy_line() -> None:
    rng = np.random.default_rng(5)
    dose, noise = rng.uniform(0, 10, 2_000), rng.normal(size=2_000)
    wiggly = loo_bandwidth(dose, np.sin(3 * dose) + 0.3 * noise, "epanechnikov")
    straight = loo_bandwidth(dose, dose + 0.3 * noise, "epanechnikov")
    assert wiggly.bandwidth < rule_of_thumb(dose, "epanechnikov") < straight.bandwidth


def test_rows_without_weight_neither_smooth_nor_count() -> None:
    dose, outcome, row_weights = noisy_curve(200, 0.5)
    row_weights[::2] = 0
    outcome[::2] += 100
    with_them = loo_bandwidth(dose, outcome, "biweight", weights=row_weights)
    without = loo_bandwidth(dose[1::2], outcome[1::2], "biweight", weights=row_weights[1::2])
    np.testing.assert_allclose(with_them.risks, without.risks, rtol=1e-12)


def test_the_same_rows_give_the_same_bits_and_their_order_only_rounding() -> None:
    dose, outcome, row_weights = noisy_curve(500, 0.5)
    choice = loo_bandwidth(dose, outcome, "gaussian", weights=row_weights)
    again = loo_bandwidth(dose, outcome, "gaussian", weights=row_weights)
    assert choice.risks.tobytes() == again.risks.tobytes()
    order = np.random.default_rng(6).permutation(500)
    shuffled = loo_bandwidth(dose[order], outcome[order], "gaussian", weights=row_weights[order])
    np.testing.assert_allclose(shuffled.risks, choice.risks, rtol=1e-10)
    assert shuffled.bandwidth == pytest.approx(choice.bandwidth)
    lines = [local_linear_weights(dose, [0.0, 5.0], 1.0, "gaussian") for _ in range(2)]
    assert lines[0].tobytes() == lines[1].tobytes()


def test_many_rows_need_no_matrix_of_rows_by_rows() -> None:
    dose, outcome, row_weights = noisy_curve(100_000, 1.0)
    tracemalloc.start()
    try:
        choice = loo_bandwidth(dose, outcome, "epanechnikov", [0.1, 0.5, 2.5], row_weights)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert choice.bandwidth == 0.5
    assert peak < 100_000 * 40 * 8


def test_an_outlying_dose_drops_the_candidates_that_its_range_makes_too_fine() -> None:
    dose = np.append(midpoints(100), 1e6)
    choice = loo_bandwidth(dose, np.append(midpoints(100), 0.0), "epanechnikov")
    assert len(choice.candidates) == 1
    with pytest.raises(ValueError, match=r"'candidates' .* at least 61\.\d+.* Got 1\.0 instead"):
        loo_bandwidth(dose, dose, "epanechnikov", [1.0, 100.0])


def test_what_was_chosen_and_what_it_scored_can_be_seen() -> None:
    dose, outcome, _ = noisy_curve(200, 0.5)
    choice = loo_bandwidth(dose, outcome, "triweight", [3.0, 1.0, 2.0, 1.0])
    assert isinstance(choice, BandwidthChoice)
    assert choice.candidates.tolist() == [1.0, 2.0, 3.0]
    assert choice.bandwidth == choice.candidates[np.argmin(choice.risks)]


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [0, -1.0, np.nan, np.inf, 1e-19, "wide", None, True])
def test_a_bandwidth_that_is_not_positive_and_finite_is_refused(bandwidth: Any) -> None:
    message = r"The 'bandwidth' parameter must be a float in \[1e-18, 1e\+18\]\. Got .* instead"
    with pytest.raises(ValueError, match=message):
        given_bandwidth(bandwidth)
    with pytest.raises(ValueError, match=message):
        scaled_kernel([0.0, 1.0], [0.0], bandwidth, "gaussian")
    with pytest.raises(ValueError, match=message):
        local_linear_weights([0.0, 1.0], [0.0], bandwidth, "gaussian")


def test_given_bandwidths_come_back_as_floats() -> None:
    for bandwidth in (2, np.float32(2), np.int64(2)):
        assert type(given_bandwidth(bandwidth)) is float
        assert given_bandwidth(bandwidth) == 2.0


ROWS: dict[str, Any] = {"dose": [0.0, 1.0, 2.0], "kernel": "gaussian"}
SMOOTHER: dict[str, Any] = {**ROWS, "grid": [0.5, 1.5], "bandwidth": 1.0}
CHOICE: dict[str, Any] = {**ROWS, "outcome": [1.0, 2.0, 0.0]}


@pytest.mark.parametrize(
    ("function", "valid", "invalid", "message"),
    [
        (scaled_kernel, SMOOTHER, {"kernel": "box"}, r"'kernel' .*'gaussian'.* Got 'box'"),
        (scaled_kernel, SMOOTHER, {"kernel": 3}, "'kernel' .* members of Kernel. Got 3"),
        (scaled_kernel, SMOOTHER, {"dose": [0.0, np.nan]}, "'dose' .* Got nan at position 1"),
        (scaled_kernel, SMOOTHER, {"grid": []}, r"'grid' .* one or more .* Got shape \(0,\)"),
        (scaled_kernel, SMOOTHER, {"grid": [[1.0]]}, r"'grid' .* Got shape \(1, 1\)"),
        (scaled_kernel, SMOOTHER, {"bandwidth": [1.0] * 3}, r"'bandwidth' .* 2 .* Got shape \(3,"),
        (scaled_kernel, SMOOTHER, {"bandwidth": [1.0, -2.0]}, r"'bandwidth' .* Got -2\.0"),
        (scaled_derivative, SMOOTHER, {"kernel": "uniform"}, "'kernel' .* Got 'uniform'"),
        (effective_sample, SMOOTHER, {"weights": [1.0, 1.0]}, r"'weights' .* 3 .* Got shape \(2,"),
        (
            effective_sample,
            SMOOTHER,
            {"weights": [1, -1, 1]},
            "'weights' .* Got -1.0 at position 1",
        ),
        (effective_sample, SMOOTHER, {"weights": [0, 0, 0]}, "'weights' .* Got 0.0 at position 0"),
        (normalised_kernel, SMOOTHER, {"over": "t"}, "'over' .* 'grid' or 'rows'. Got 't'"),
        (normalised_kernel, SMOOTHER, {"support": (0.0, 1.0)}, r"'support' .* Got \(0\.0, 1\.0\)"),
        (normalised_kernel, SMOOTHER, {"grid": [-1.0]}, r"'grid' .* 0\.0 to 2\.0. Got -1\.0"),
        (normalised_kernel, SMOOTHER, {"dose": [1.0, 1.0]}, r"'dose' .* from 1\.0 to 1\.0"),
        (local_linear_weights, SMOOTHER, {"edge_factor": 0.5}, r"'edge_factor' .* Got 0\.5"),
        (rule_of_thumb, ROWS, {"dose": [2.0, 2.0]}, r"'dose' .* vary.* from 2\.0 to 2\.0"),
        (canonical_bandwidth, {}, {"kernel": ExactMatchKernel()}, "'kernel' .* Got 'exact'"),
        (loo_bandwidth, CHOICE, {"kernel": "exact"}, "'kernel' .* bandwidth. Got 'exact'"),
        (loo_bandwidth, CHOICE, {"outcome": [1.0]}, r"'outcome' .* 3 .* Got shape \(1,\)"),
        (loo_bandwidth, CHOICE, {"degree": 2}, "'degree' .* 0 or 1. Got 2"),
        (loo_bandwidth, CHOICE, {"candidates": [1.0, 0.0]}, r"'candidates' .* Got 0\.0"),
        (loo_bandwidth, CHOICE, {"weights": [1, 0, 0]}, "'dose' .* two rows .* Got 1"),
    ],
)
def test_errors_name_parameter_rule_and_value(
    function: Callable[..., Any], valid: dict[str, Any], invalid: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        function(**{**valid, **invalid})
