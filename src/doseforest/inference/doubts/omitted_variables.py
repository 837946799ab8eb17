"""What sensitivity to unmeasured confounding is made of, estimated from rows and their curves."""

from __future__ import annotations

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.doses.dose_values import Doses
from doseforest.engine.look_inside.node_names import feature_label
from doseforest.estimator.averages.average_curves import average_of_units
from doseforest.estimator.fit_plan import fold_numbers
from doseforest.inference.doubts.sensitivity import Benchmark, Sensitivity
from doseforest.inference.judged_rows import CurveShapes, JudgedRows, curve_shapes
from doseforest.nuisance.treatment.conditional_means import cross_fit_means


def estimate_sensitivity(
    judged: JudgedRows, ends: Doses, columns: IntArray | None = None
) -> Sensitivity:
    """Sensitivity of the average outcome at the second of two doses less that at the first.

    The representer is c'G^-1 B~ with B~ the functions of the dose less their means given the
    covariates, G their mean products, and c the difference of the functions between the doses.
    It is that of effects averaged as a regression does, most where doses vary most given the
    covariates: exact for curves made of these functions whose differences between units do not go
    with how much their doses vary. It needs no density, unlike weights at the two doses,
    whose mean square has no limit as the bandwidth shrinks and would make the bound depend on it.

    Parameters
    ----------
    columns : array of shape (n_benchmarks,), optional
        Covariates to compare with.
    """
    rows = judged.rows
    doses = ends.values
    curves = judged.curves(doses)
    shapes = curve_shapes(judged)
    contrast = _contrast(judged, doses)
    representer = shapes.functions @ _weights_of(shapes.functions, contrast, rows.weights)
    # The mean square of a representer in a sample is c'G^-1 c, and falls where rows spread more.
    square = float(np.average(representer**2, weights=rows.weights))
    said = np.column_stack(
        [
            curves[:, 1] - curves[:, 0] + representer * shapes.residual,
            shapes.residual**2,
            2 * square - representer**2,
        ]
    )
    result = average_of_units(said, rows.weights, rows.ids)
    return Sensitivity(
        low=ends[0].plain,
        high=ends[1].plain,
        value=float(result.values[0]),
        residual_variance=float(result.values[1]),
        representer_square=square,
        covariance=result.covariance,
        degrees=float(result.degrees[0]),
        benchmarks=()
        if columns is None
        else _benchmarks(judged, shapes, contrast, float(result.values[1]), columns),
    )


def _contrast(judged: JudgedRows, doses: FloatArray) -> FloatArray:
    """Difference of the functions of the dose between two doses, the constant left out."""
    functions = judged.plan.basis.evaluate(doses)[:, 1:]
    difference: FloatArray = functions[1] - functions[0]
    return difference


def _weights_of(
    functions: FloatArray, contrast: FloatArray, weights: FloatArray | None
) -> FloatArray:
    row_weights = np.ones(len(functions)) if weights is None else weights
    gram = functions.T @ (functions * row_weights[:, None]) / row_weights.sum()
    solved: FloatArray = np.linalg.pinv(gram, hermitian=True) @ contrast
    return solved


def _benchmarks(
    judged: JudgedRows,
    shapes: CurveShapes,
    contrast: FloatArray,
    variance: float,
    columns: IntArray,
) -> tuple[Benchmark, ...]:
    """Strength of covariates: what the models of outcome and dose lose without each of them.

    Their predictions are fitted again without the covariate, and with all of them: what boosting
    cannot follow is lost both times. Predictions have no noise, so the difference is sharp.
    """
    rows = judged.rows
    functions = judged.plan.basis.evaluate(rows.dose.values)[:, 1:]
    predicted = functions - shapes.functions  # means of the functions given the covariates
    everything = np.arange(rows.X.shape[1])

    def moments(seen: IntArray) -> tuple[float, float]:
        """Variance of the outcome that these covariates do not see, and E[a^2] given them."""
        lost = judged.observed - _followed(judged, judged.observed[:, None], seen, True)[:, 0]
        given = seen[np.isin(seen, rows.treatment_columns)]
        centred = functions - _followed(judged, predicted, given, False)
        square = contrast @ _weights_of(centred, contrast, rows.weights)
        return float(np.average(lost**2, weights=rows.weights)), float(square)

    with_all = moments(everything)
    result = []
    for column in columns.tolist():
        lost, square = moments(everything[everything != column])
        gains = (lost - with_all[0]) / variance, with_all[1] / square - 1
        strengths = (max(gain, 0.0) for gain in gains)
        result.append(Benchmark(feature_label(rows.names, column), *strengths))
    return tuple(result)


def _followed(
    judged: JudgedRows, targets: FloatArray, seen: IntArray, with_dose: bool
) -> FloatArray:
    """Targets as boosting tells them from some covariates, and from the dose or not."""
    rows, plan = judged.rows, judged.plan
    table = rows.X[:, seen]
    if with_dose:
        table = np.column_stack([table, rows.dose.table])
    if not table.shape[1]:
        return np.tile(np.average(targets, axis=0, weights=rows.weights), (rows.n_rows, 1))
    return cross_fit_means(
        table,
        targets,
        fold_numbers(rows.ids, plan),
        weights=rows.weights,
        counts=rows.category_counts(seen),
        seed=plan.seed,
        n_threads=plan.n_threads,
    )
