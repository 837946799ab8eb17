"""A fitted forest on one screen."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.text_tables import text_table
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.estimator.averages.averaging import Averager
from doseforest.estimator.trained_parts import TrainedPart, added_out_of_bag, out_of_bag
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.outcome.cross_fitted_outcome import is_binary
from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support
from doseforest.report.dose_axes import DoseAxes, fitted_axes
from doseforest.report.doses_shown import MOST_LEVELS, few_doses
from doseforest.report.overlap.overlap_measures import weight_spread
from doseforest.report.overlap.overlap_report import OverlapReport, report_overlap
from doseforest.report.overlap.overlap_text import WIDTH

if TYPE_CHECKING:
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest

MOST_SHARES = 4
EFFECT_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Members of the library in plain words; others go by their names.
KINDS = {
    "core": "splines",
    "core, process": "splines with a Gaussian process",
    "core, boosted": "splines with boosted trees",
    "core, boosted early": "splines with boosted trees",
    "process": "Gaussian processes",
    "process of doses as they are": "Gaussian processes",
    "process of one kernel": "Gaussian processes",
    "linear trees": "boosted trees",
    "trees": "boosted trees",
    "trees, squared error": "boosted trees",
    "trees, squared error, early": "boosted trees",
}
LEAST_SHARE = 0.05  # of a kind that is named
FLAT = 1e-9  # bend of curves that rounding leaves, as a share of their values
BEND_DOSES = 9  # that the bend of curves is read at


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelSummary:
    """What was fitted and what it says, as text.

    Attributes
    ----------
    title : str
        First line.
    sections : tuple of (str, tuple of str)
        Headings and their lines.

    Examples
    --------
    >>> ModelSummary("Forest", (("Data", ("400 rows",)), ("Time", ("1 s",))))
    Forest
    Data  400 rows
    Time  1 s
    """

    title: str
    sections: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        indent = 2 + max(len(heading) for heading, _ in self.sections)
        lines = [self.title]
        for heading, body in self.sections:
            wrapped = [
                part if place == 0 else part.lstrip()
                for line in body
                for place, part in enumerate(
                    textwrap.wrap(line, WIDTH - indent, drop_whitespace=False) or [""]
                )
            ]
            heads = [heading] + [""] * (len(wrapped) - 1)
            lines += [f"{a:<{indent}}{b}".rstrip() for a, b in zip(heads, wrapped, strict=True)]
        return "\n".join(lines)

    __repr__ = __str__


def summarise(forest: GeneralizedCausalForest) -> ModelSummary:
    """Put a summary together; see `GeneralizedCausalForest.summary`."""
    fitted = forest._fitted
    parts, rows, axes = fitted.parts, fitted.rows, fitted_axes(fitted)
    doses, baseline = Doses.of(fitted.model.doses), fitted.model.baseline
    effects = _effects(parts, fitted.averager, few_doses(doses, baseline, axes), baseline)
    overlap, seconds = report_overlap(fitted), forest.seconds_
    _, observed = out_of_bag(parts, doses.values[:1])
    return ModelSummary(
        type(forest).__name__,
        (
            ("Data", (_data(rows),)),
            ("Treatment", _treatment(rows, fitted.grounds, axes, baseline)),
            ("Made of", (made_of(forest.outcome_weights_, parts, doses),)),
            ("Outcome model", (_outcome(rows, forest.outcome_weights_, parts, observed),)),
            ("Correction", _correction(fitted.plan.correction.name, forest.rounds_)),
            ("Effects", effects),
            ("Overlap", _overlap(overlap)),
            ("Time", (", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items()),)),
        ),
    )


def made_of(weights: Mapping[str, float], parts: tuple[TrainedPart, ...], doses: Doses) -> str:
    """What the curves are made of, in plain words: kinds of models, and what forests changed.

    That is the root mean square of what the correction adds to curves, of units that it has not
    seen, as a share of that of the curves of the outcome model; levels are taken off both.
    """
    kinds: dict[str, float] = {}
    for name, share in weights.items():
        kind = KINDS.get(name, name)
        kinds[kind] = kinds.get(kind, 0.0) + share
    named = sorted(kinds.items(), key=lambda item: -item[1])
    shown = [own for own in named if own[1] >= LEAST_SHARE] or named[:1]
    text = ", ".join(f"{kind} ({share:.0%})" for kind, share in shown)
    few = doses[np.linspace(0, len(doses) - 1, min(len(doses), BEND_DOSES)).astype(int)]
    added = added_out_of_bag(parts, few.values)
    if not added.any():
        return f"{text}; forests added nothing"
    corrected, _ = out_of_bag(parts, few.values)
    changed, bend = _bend(added), _bend(corrected - added)
    if bend <= FLAT * float(np.abs(corrected).max()):
        return f"{text}, flat over the dose; forests added all of the curves' bend"
    return f"{text}; forests changed {changed / bend:.0%} of the curves' bend"


def _bend(curves: FloatArray) -> float:
    """Root mean square of curves less their levels."""
    return float(np.sqrt(((curves - curves.mean(axis=1, keepdims=True)) ** 2).mean()))


def _data(rows: TrainingRows) -> str:
    n_groups = len(np.unique(rows.ids))
    n_missing = int(np.isnan(rows.X).any(axis=0).sum())
    facts = [f"{rows.n_rows:,} rows, {rows.X.shape[1]} features"]
    if n_missing:
        facts.append(f"{n_missing} of them with missing values")
    if len(rows.effect_columns) < rows.X.shape[1]:
        facts.append(f"{len(rows.effect_columns)} to split on")
    if len(rows.treatment_columns) < rows.X.shape[1]:
        facts.append(f"{len(rows.treatment_columns)} for the treatment")
    if n_groups < rows.n_rows:
        facts.append(f"{n_groups:,} groups")
    if rows.weights is not None:
        size = weight_spread(rows.weights).effective_sample
        facts.append(f"weights worth {size:,.0f} rows")
    mean = np.average(rows.y, weights=rows.weights)
    kind = "binary outcome" if is_binary(rows.y, rows.weights) else "outcome"
    return ", ".join(facts) + f"; {kind} with mean {mean:.3g}"


def _treatment(
    rows: TrainingRows, grounds: tuple[DoseSupport, ...], axes: DoseAxes, baseline: Any
) -> tuple[str, ...]:
    row_weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    columns = rows.dose.columns
    if len(columns) == 1:
        digits = 4 if grounds[0].continuous else 6
        text = _component(columns[0], row_weights, grounds[0])
        return (f"{text}; baseline {dose_text(baseline, digits)}",)
    first = f"{len(columns)} components; baseline {dose_text(baseline, 4)}"
    if not axes.arms:
        described = (
            _component(own_dose, row_weights, ground)
            for own_dose, ground in zip(columns, grounds, strict=True)
        )
        return (
            first,
            *(f"{name}: {text}" for name, text in zip(axes.labels, described, strict=True)),
        )
    arm, amount = columns
    lines = [f"arms with doses of their own; baseline {dose_text(baseline, 4)}"]
    for level in np.unique(arm):
        mine = arm == level
        share = row_weights[mine].sum() / row_weights.sum()
        text = _within_arm(amount[mine], row_weights[mine])
        lines.append(f"{axes.labels[0]} {level:g} ({share:.0%}): {text}")
    return tuple(lines)


def _within_arm(amount: FloatArray, weights: FloatArray) -> str:
    kept = amount[weights > 0]
    if len(kept) == 0 or np.ptp(kept) == 0:
        return f"always {amount[0]:.4g}"
    return _component(amount, weights, dose_support(amount, weights))


def _component(dose: FloatArray, weights: FloatArray, ground: DoseSupport) -> str:
    """One component in words: a quantity with its range, masses with their shares, or levels."""
    shares = [
        f"{mass:g} ({weights[dose == mass].sum() / weights.sum():.0%})" for mass in ground.masses
    ]
    listed = ", ".join(shares[:MOST_LEVELS]) + (", …" if len(shares) > MOST_LEVELS else "")
    if not ground.continuous:
        return f"levels {listed}"
    mean = np.average(dose, weights=weights)
    spread = np.sqrt(np.average((dose - mean) ** 2, weights=weights))
    text = f"a quantity from {dose.min():.4g} to {dose.max():.4g}"
    text += f" (mean {mean:.3g}, standard deviation {spread:.3g})"
    if shares:
        text += f", point masses at {listed}"
    return text


def _outcome(
    rows: TrainingRows,
    weights: Mapping[str, float],
    parts: tuple[TrainedPart, ...],
    observed: FloatArray,
) -> str:
    members = sorted(weights.items(), key=lambda item: -item[1])
    named = ", ".join(f"{name} {share:.2f}" for name, share in members if share > 0.005)
    alone = _explained(rows, parts[0].outcome.observed)
    both = _explained(rows, observed)
    return f"{named}; explains {alone:.1%} of the variance out of fold, corrected {both:.1%}"


def _explained(rows: TrainingRows, predicted: FloatArray) -> float:
    mean = np.average(rows.y, weights=rows.weights)
    total = np.average((rows.y - mean) ** 2, weights=rows.weights)
    left = np.average((rows.y - predicted) ** 2, weights=rows.weights)
    return float(1 - left / total) if total > 0 else 0.0


def _correction(name: str, rounds: tuple[Mapping[str, Any], ...]) -> tuple[str, ...]:
    if not rounds:
        return (f"{name}, without a choice to report",) if name != "none" else ("none",)
    lines = []
    for number, report in enumerate(rounds, start=1):
        half = f", half {report['half'] + 1}" if "half" in report else ""
        where = f"{name}, round {number}{half}: "
        if "t_value" not in report:  # of a correction that is not weighed by its gain
            facts = (f"{key} {each:.4g}" for key, each in report.items() if key != "half")
            lines.append(where + ", ".join(facts))
            continue
        if not report.get("shares"):
            lines.append(f"{where}nothing added, the gain was not sure (t {report['t_value']:.1f})")
            continue
        gain = 1 - report["corrected_risk"] / report["risk"] if report["risk"] > 0 else 0.0
        shares = sorted(report["shares"].items(), key=lambda item: -item[1])
        named = ", ".join(f"{each} {share:.2f}" for each, share in shares[:MOST_SHARES])
        more = ", …" if len(shares) > MOST_SHARES else ""
        lines.append(
            f"{where}strength {report['strength']:.2f} (t {report['t_value']:.1f}), risk down "
            f"{gain:.1%}; {named}{more}"
        )
    return tuple(lines)


def _effects(
    parts: tuple[TrainedPart, ...], averager: Averager, doses: Doses, baseline: Any
) -> tuple[str, ...]:
    curves, _ = out_of_bag(parts, np.append(doses, baseline))
    effects = curves[:, :-1] - curves[:, -1:]
    quantiles = np.quantile(effects, EFFECT_QUANTILES, axis=0)
    rows = []
    for k, dose in enumerate(doses):
        average = averager.average_effect(dose, baseline)
        rows.append(
            [
                dose_text(dose, 4),
                f"{average.value:.3g}",
                f"{average.standard_error:.2g}",
                *(f"{value:.3g}" for value in quantiles[:, k]),
            ]
        )
    header = ["dose", "average", "(se)", *(f"{share:.0%}" for share in EFFECT_QUANTILES)]
    header[3] = f"units: {header[3]}"
    against = dose_text(baseline, 4)
    return (
        f"against {against}; averages doubly robust, quantiles over units out of bag",
        *text_table(header, rows),
    )


def _overlap(report: OverlapReport) -> tuple[str, ...]:
    share = report.after_cap.effective_sample / report.n_rows
    least = int(np.argmin(report.supported))
    facts = (
        f"{report.supported[least]:.0%} or more of the units could have had each dose "
        f"(least at {dose_text(report.doses[least], 4)}); weights {report.weights_name!r} worth "
        f"{share:.0%} of the rows; "
        f"{report.weak_share:.0%} of the units with weak positivity"
    )
    n_wrong = len(report.messages)
    if not n_wrong:
        return (f"no problem found: {facts}",)
    plural = "s" if n_wrong > 1 else ""
    return (f"{n_wrong} problem{plural}, see overlap_report(): {facts}",)
