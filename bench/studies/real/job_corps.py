"""Job Corps: the average curve beside the authors' own kernel estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from bench.real_data import DoseRows, job_corps_rows
from bench.studies.markdown import markdown_table
from bench.studies.real.held_out import (
    held_out_text,
    judge_held_out,
    no_worse_than_one_curve,
)
from bench.studies.real.plain import with_error
from bench.studies.real.real_effort import RealEffort
from bench.studies.real.real_section import RealSection, pick
from bench.studies.report import Verdict
from bench.studies.scores import MISSING
from bench.studies.tasks import Record
from doseforest import GeneralizedCausalForest
from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.estimator.averages.averaging import prepare_averages
from doseforest.nuisance.treatment.density_registry import DENSITIES, WEIGHTS

DEFAULT, FOREST = "default", "random forest"  # outcome models
LEAF = 20  # of the random forest
ALONE = "outcome model alone"
MOST_DIFFERENCE, LEAST_CORRELATION, ERROR_RATIO = 0.5, 0.96, (0.9, 1.1)
BAR = ("difference", "correlation", "error_ratio")  # what it is about
FEW_HOURS, MANY_HOURS = 200.0, 1000.0
N_DOSES_SHOWN = 6
SHOWN = ((DEFAULT, "auto"), (DEFAULT, "location_scale"), (FOREST, "location_scale"))
WHY = (
    "Where we differ: a named density makes the whole correction, as the authors do. `auto` weighs "
    "bias against noise and makes less of it on top of the default outcome model, so that its "
    "curve is smoother than theirs."
)


def measure(effort: RealEffort) -> list[Record]:
    rows = job_corps_rows.rows(job_corps_rows.read_trainees(effort.n_rows))
    published = job_corps_rows.read_published()
    known: dict[str, Any] = {name: published[name].to_numpy(float) for name in ("t", "beta", "se")}
    shown = np.unique(np.linspace(0, len(known["t"]) - 1, N_DOSES_SHOWN).astype(int))
    about = {"measure": "curve", "n": len(rows)}
    records: list[Record] = [
        about
        | {"row": "published", "doses": known["t"][shown].tolist()}
        | {"values": known["beta"][shown].tolist(), "errors": known["se"][shown].tolist()}
    ]
    for seed in effort.seeds:
        for model in (DEFAULT, FOREST):
            forest = fit(rows, effort, model, seed)
            for density, values, errors in average_curves(forest, rows, known["t"]):
                name = {"row": f"{model}, {density}", "seed": seed}
                close = closeness(values, errors, known)
                curve: Record = {"values": values[shown].tolist()}
                curve["errors"] = None if errors is None else errors[shown].tolist()
                records.append(about | name | close | curve)
            if (seed, model) == (effort.seed, DEFAULT):
                records += groups(forest, rows)
    return records + judge_held_out(rows, effort)


def fit(rows: DoseRows, effort: RealEffort, model: str, seed: int) -> GeneralizedCausalForest:
    """With the authors' kernel and bandwidth; trees correct the default model alone."""
    options: dict[str, Any] = {
        "kernel": "epanechnikov",
        "average_bandwidth": job_corps_rows.BANDWIDTH,
        "random_state": seed,
    }
    if model == FOREST:
        n_trees = max(1, 3 * effort.n_trees // 4)
        options["outcome_model"] = RandomForestRegressor(
            n_trees, min_samples_leaf=LEAF, max_features=1 / 3, n_jobs=1
        )
        options["correction"] = "none"
    return effort.forest(rows, **options)


def average_curves(
    forest: GeneralizedCausalForest, rows: DoseRows, doses: FloatArray
) -> list[tuple[str, FloatArray, FloatArray | None]]:
    """By kind of weights, which enter averages only: one fit serves all of them."""
    alone = np.asarray(forest.outcome_model_.dose_response(rows.X, doses)).mean(axis=0)
    found: list[tuple[str, FloatArray, FloatArray | None]] = [(ALONE, alone, None)]
    for density in ("auto", *DENSITIES, *WEIGHTS):
        plan = replace(forest._fitted.plan, density=density)
        curve = prepare_averages(forest._fitted.parts, plan).average_curve(Doses.of(doses))
        found.append((density, curve.values, curve.standard_errors))
    return found


def closeness(values: FloatArray, errors: FloatArray | None, known: dict[str, Any]) -> Record:
    """Mean absolute difference, correlation and mean ratio of standard errors."""
    return {
        "difference": float(np.abs(values - known["beta"]).mean()),
        "correlation": float(np.corrcoef(values, known["beta"])[0, 1]),
        "error_ratio": None if errors is None else float((errors / known["se"]).mean()),
    }


def groups(forest: GeneralizedCausalForest, rows: DoseRows) -> list[Record]:
    """Effects of many hours against few, by kinds of trainees."""
    effects = np.asarray(forest.effect(rows.X, MANY_HOURS, FEW_HOURS))
    women, young = rows.X["female"].to_numpy() == 1, rows.X["age"].to_numpy() < 20
    kinds = {"women": women, "men": ~women, "below 20 years": young, "20 years and more": ~young}
    return [
        {"measure": "groups", "row": name, "n": int(own.sum())}
        | {"ours": float(effects[own].mean()), "spread": float(effects[own].std())}
        for name, own in kinds.items()
        if own.any()
    ]


def parts(records: list[Record]) -> list[str]:
    curves = pick(records, "curve")
    n, n_seeds = curves[0]["n"], len({record["seed"] for record in curves[1:]})
    kinds = "; ".join(
        f"{own['row']} {own['ours']:+.1f} (s.d. {own['spread']:.1f})"
        for own in pick(records, "groups")
    )
    return [
        f"{n:,} trainees: hours of training and per cent of weeks worked, observed. The average "
        "curve with the authors' Epanechnikov kernel and bandwidth, beside their estimates with "
        f"random forests (Colangelo and Lee); means over {n_seeds} seeds, standard errors in "
        f"brackets. The random forest has leaves of {LEAF} and no trees that correct it.",
        curve_table(curves),
        f"Closeness over all doses. Bar: a mean absolute difference of at most {MOST_DIFFERENCE}, "
        f"a correlation of at least {LEAST_CORRELATION}, standard errors within a tenth of theirs "
        "on average; the last column counts the seeds that meet it.",
        closeness_table(curves),
        WHY,
        f"Who gains: {MANY_HOURS:,.0f} hours in place of {FEW_HOURS:,.0f}, mean effect on per cent "
        f"of weeks worked: {kinds}. {held_out_text(records)}",
    ]


def curve_table(curves: Sequence[Record]) -> str:
    known = curves[0]
    lines = [
        [f"{dose:.0f} hours", with_error(value, error, 1)]
        for dose, value, error in zip(known["doses"], known["values"], known["errors"], strict=True)
    ]
    for model, density in SHOWN:
        own = of(curves, model, density)
        values, errors = (
            np.mean([one[name] for one in own], axis=0) for name in ("values", "errors")
        )
        for cells, value, error in zip(lines, values, errors, strict=True):
            cells.append(with_error(value, error, 1))
    return markdown_table(["", "published", *(f"{own}, `{kind}`" for own, kind in SHOWN)], lines)


def closeness_table(curves: Sequence[Record]) -> str:
    lines = []
    for row in dict.fromkeys(record["row"] for record in curves[1:]):
        own = [record for record in curves if record["row"] == row]
        cells = [
            MISSING if own[0][name] is None else f"{np.mean([one[name] for one in own]):.2f}"
            for name in BAR
        ]
        met = str(sum(meets_the_bar(**{name: one[name] for name in BAR}) for one in own))
        lines.append([row, *cells, met])
    return markdown_table(
        ["model, weights", "difference", "correlation", "s.e. ratio", "met"], lines
    )


def meets_the_bar(difference: float, correlation: float, error_ratio: float | None) -> bool:
    close = difference <= MOST_DIFFERENCE and correlation >= LEAST_CORRELATION
    return close and error_ratio is not None and ERROR_RATIO[0] <= error_ratio <= ERROR_RATIO[1]


def of(curves: Sequence[Record], model: str, density: str) -> list[Record]:
    """Records of one row of the table, one for each seed."""
    return [record for record in curves if record["row"] == f"{model}, {density}"]


def verdicts(records: list[Record]) -> list[Verdict]:
    curves = pick(records, "curve")
    return [
        *(near_the_published(curves, *shown) for shown in SHOWN),
        correction_matters(curves),
        no_worse_than_one_curve("job-corps", records),
    ]


def near_the_published(curves: Sequence[Record], model: str, density: str) -> Verdict:
    own = of(curves, model, density)
    means = {name: float(np.mean([one[name] for one in own])) for name in BAR}
    measured = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in means.items())
    claim = f"job-corps: {model} model, `{density}`: the published curve and standard errors"
    return Verdict(meets_the_bar(**means), claim, measured)


def correction_matters(curves: Sequence[Record]) -> Verdict:
    """Without it, the bar would say nothing about us."""
    means = [
        float(np.mean([own["difference"] for own in of(curves, FOREST, kind)]))
        for kind in (ALONE, "location_scale")
    ]
    claim = "job-corps: the random forest alone is further from the published curve than corrected"
    return Verdict(means[0] > means[1], claim, f"difference {means[0]:.2f} against {means[1]:.2f}")


SECTION = RealSection(
    "Job Corps", (job_corps_rows.FILE, job_corps_rows.ESTIMATES_FILE), measure, parts, verdicts
)
