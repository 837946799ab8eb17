"""Qini scores of several models, dose by dose: Table 2 of the GCF paper, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.late import late
from doseforest.base.text_tables import text_table
from doseforest.data.checks import checked_columns
from doseforest.doses.dose_values import MAX_COMPONENTS, dose_text
from doseforest.doses.grids import FEW_LEVELS
from doseforest.evaluation.dose_scores import DoseScores
from doseforest.evaluation.predicted_curves import predicted_curves
from doseforest.evaluation.qini.dose_arms import one_dose
from doseforest.evaluation.qini.qini_curve import QiniCurve
from doseforest.evaluation.qini.ranked_units import compare_qini, qini_curve
from doseforest.evaluation.row_estimates import RowEstimate, mean_of_estimates


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QiniTable:
    """Scores of models on the same rows; printed, a row for each model and a column for each dose.

    Below them stand the paired differences to the model of best mean score.

    Attributes
    ----------
    doses : array of shape (n_doses,) or (n_doses, n_components)
        The doses, without the baseline.
    curves : mapping from str to tuple of QiniCurve
        By model, a curve for each dose.

    Examples
    --------
    >>> from doseforest.evaluation import qini_table
    >>> dose = np.arange(400) % 2
    >>> x = np.arange(400) // 2 % 2
    >>> models = {"right": np.column_stack([0 * x, x]), "wrong": np.column_stack([0 * x, 1 - x])}
    >>> table = qini_table(models, x[:, None], x * dose + 0.0, dose)
    >>> table.best, table.scores.round(3)
    ('right', array([[ 0.125],
           [-0.125]]))
    """

    doses: FloatArray  # (n_doses,)
    curves: Mapping[str, tuple[QiniCurve, ...]] = field(repr=False)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return tuple(self.curves)

    @property
    def scores(self) -> FloatArray:
        """Scores, shape (n_models, n_doses)."""
        return np.array([[curve.score for curve in each] for each in self.curves.values()])

    @property
    def best(self) -> str:
        """The model of best mean score, whether or not it is ahead beyond noise."""
        return max(self.models, key=lambda name: self.mean(name).value)

    def mean(self, model: str) -> RowEstimate:
        """Mean score of a model over the doses.

        Parameters
        ----------
        model : str
            Its name.

        Returns
        -------
        RowEstimate
            The mean with its standard error.
        """
        return mean_of_estimates([curve.estimate for curve in self._of(model)])

    def differences(self, first: str, second: str) -> tuple[RowEstimate, ...]:
        """Scores of one model less those of another, paired, dose by dose.

        Parameters
        ----------
        first, second : str
            Names of models.

        Returns
        -------
        tuple of RowEstimate
            A difference for each dose.
        """
        pairs = zip(self._of(first), self._of(second), strict=True)
        return tuple(compare_qini(one, other) for one, other in pairs)

    def mean_difference(self, first: str, second: str) -> RowEstimate:
        """Mean over the doses of `differences`.

        Parameters
        ----------
        first, second : str
            Names of models.

        Returns
        -------
        RowEstimate
            The mean difference.
        """
        return mean_of_estimates(list(self.differences(first, second)))

    def plot(self) -> Any:
        """Draw the curves of all models, a picture for each dose; needs the `plot` extra.

        Returns
        -------
        array of matplotlib axes
            The pictures.
        """
        axes = late("doseforest.report.qini_plots:side_by_side")(len(self.doses))
        for place, ax in enumerate(axes):
            late("doseforest.report.qini_plots:plot_qini")(
                {name: curve[place] for name, curve in self.curves.items()}, ax=ax
            )
        return axes

    def __str__(self) -> str:
        header = ["Qini score", *(dose_text(d, 4) for d in self.doses), "mean"]
        lines = [[name, *(_with_interval(e) for e in self._row(name))] for name in self.models]
        others = [name for name in self.models if name != self.best]
        paired = [
            [
                f"{self.best} less {name}",
                *(
                    f"{each.value:.3g} (p = {each.p_value:.2g})"
                    for each in (
                        *self.differences(self.best, name),
                        self.mean_difference(self.best, name),
                    )
                ),
            ]
            for name in others
        ]
        return "\n".join(text_table(header, [*lines, *paired]))

    __repr__ = __str__

    def _row(self, name: str) -> list[RowEstimate]:
        return [*(curve.estimate for curve in self._of(name)), self.mean(name)]

    def _of(self, model: str) -> tuple[QiniCurve, ...]:
        if model not in self.curves:
            raise ValueError(
                f"The 'model' parameter must be one of {', '.join(self.models)}. "
                f"Got {model!r} instead."
            )
        return self.curves[model]


def qini_table(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    treatment: Any,
    *,
    doses: Any = None,
    baseline: Any = 0.0,
    propensity: Any = None,
    scores: DoseScores | None = None,
    bandwidth: float | None = None,
    estimator: str = "means",
    sample_weight: Any = None,
    groups: Any = None,
) -> QiniTable:
    """Score models on rows that they were not fitted on, dose by dose.

    Parameters
    ----------
    models : dict of objects with `dose_response(X, doses)` or `effect(X, dose, baseline)`
        Or of arrays of shape (n_rows, 1 + n_doses): predictions at the baseline and the doses.
    X : table of shape (n_rows, n_features)
        Features.
    y : array of shape (n_rows,)
        Outcomes.
    treatment : array of shape (n_rows,) or (n_rows, n_components)
        Doses.
    doses : array of shape (n_doses,) or (n_doses, n_components), optional
        Doses to compare with the baseline; by default all levels of the treatment but the baseline.
    baseline : dose, default=0.0
        The dose that effects are against.
    propensity : array of shape (n_rows,) or dict, optional
        As for `qini_curve`.
    scores : DoseScores, optional
        At the baseline and the doses, as from `robust_scores`; they take the place of `y` and
        `treatment`.
    bandwidth : float, optional
        Of a continuous dose, as for `qini_curve`.
    estimator : {"means", "radcliffe"}, default="means"
        How arms are compared, as for `qini_curve`.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.
    groups : array of shape (n_rows,), optional
        Rows of a group are one draw in standard errors.

    Returns
    -------
    QiniTable
        A curve for each model and dose, with paired differences.

    Examples
    --------
    >>> from doseforest.baselines import boosting, ZeroEffect
    >>> from doseforest.datasets import DISCOUNT_DESIGNS
    >>> train, test = (DISCOUNT_DESIGNS["near_linear"].draw(n=5000, seed=s) for s in (0, 1))
    >>> model = boosting(50).fit(train.X, train.y, treatment=train.treatment)
    >>> table = qini_table(
    ...     {"boosting": model, "zero": ZeroEffect().fit(train.X, train.y)},
    ...     test.X, test.y, test.treatment)
    >>> table.scores.shape, table.best
    ((2, 5), 'boosting')
    """
    if not isinstance(models, Mapping) or not models:
        raise ValueError(
            "The 'models' parameter must be a dictionary of models by name, at least one. "
            f"Got {models!r} instead."
        )
    asked = asked_doses(doses, treatment, len(X), baseline)
    grid = np.concatenate([np.asarray(baseline, np.float64)[None], asked])
    result = {}
    for name, model in models.items():
        curves = predicted_curves(model, X, grid)
        result[name] = tuple(
            qini_curve(
                y,
                treatment,
                curves[:, place + 1] - curves[:, 0],
                dose=_plain(dose),
                baseline=baseline,
                propensity=propensity,
                scores=None if scores is None else scores.contrast(dose, baseline),
                bandwidth=bandwidth,
                estimator=estimator,
                sample_weight=sample_weight,
                groups=groups,
            )
            for place, dose in enumerate(asked)
        )
    return QiniTable(asked, result)


def asked_doses(doses: Any, treatment: Any, n_rows: int, baseline: Any) -> FloatArray:
    """The doses to judge, by default the levels of the treatment; the baseline is left out.

    >>> asked_doses(None, [0.0, 2.0, 1.0, 2.0], 4, baseline=0.0)
    array([1., 2.])
    """
    columns = checked_columns(treatment, "treatment", n_rows, MAX_COMPONENTS).astype(np.float64)
    start = one_dose(baseline, "baseline", columns)
    if doses is None:
        levels = np.unique(columns, axis=0)
        if len(levels) > FEW_LEVELS:
            raise ValueError(
                f"The 'doses' parameter must be given for a treatment of more than {FEW_LEVELS} "
                f"levels. Got None with {len(levels)} instead."
            )
    else:
        given = np.asarray(doses, np.float64)
        levels = np.array([one_dose(each, "doses", columns) for each in np.atleast_1d(given)])
    kept: FloatArray = levels[~(levels == start).all(axis=1)]
    if not len(kept):
        raise ValueError(
            f"The 'doses' parameter must hold a dose beside the baseline. Got {doses!r} instead."
        )
    return kept[:, 0] if columns.shape[1] == 1 else kept


def _plain(dose: Any) -> Any:
    return float(dose) if np.ndim(dose) == 0 else tuple(float(each) for each in dose)


def _with_interval(estimate: RowEstimate) -> str:
    low, high = estimate.interval()
    return f"{estimate.value:.3g} [{low:.3g}, {high:.3g}]"
