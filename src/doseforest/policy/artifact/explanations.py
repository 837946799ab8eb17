"""Decisions as sentences and as frames."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from doseforest.doses.dose_values import Doses, dose_text
from doseforest.estimator.answer_frames import check_output
from doseforest.policy.artifact.policy_decisions import FALLBACKS, REASONS, UNIT_FIELDS, Decisions


def explanation(decisions: Decisions, unit: int) -> str:
    """Why a unit has its dose, in a few lines."""
    is_whole = isinstance(unit, Integral) and not isinstance(unit, bool)
    if not is_whole or not -len(decisions) <= unit < len(decisions):
        raise ValueError(
            f"The 'unit' parameter must be the place of one of {len(decisions)} units. "
            f"Got {unit!r} instead."
        )
    own = {name: getattr(decisions, name)[unit] for name in UNIT_FIELDS}
    reason = list(REASONS)[own["reason_code"]]
    dose = dose_text(decisions.doses[own["dose_index"]])
    lines = [f"dose {dose}: {REASONS[reason]}"]
    if own["propensity"] < 1:
        lines.append(f"propensity {own['propensity']:.4g}")
    if reason in FALLBACKS or not np.isfinite(own["value"]):
        return "\n".join(lines)
    lines.append(f"response {own['response']:.4g}, {_effect_text(decisions, own)}")
    lines.append(f"value {own['value']:.4g}, cost {own['cost']:.4g}{_price_text(own)}")
    if own["runner_up"] >= 0:
        second = dose_text(decisions.doses[own["runner_up"]])
        lines.append(f"next: dose {second}, net {own['runner_up_net']:.4g}")
    if own["unpriced"] not in (own["dose_index"], -1):
        lines.append(f"if nothing had a price: dose {dose_text(decisions.doses[own['unpriced']])}")
    return "\n".join(lines)


def _effect_text(decisions: Decisions, own: dict[str, Any]) -> str:
    text = f"{own['effect']:+.4g} against dose {dose_text(decisions.baseline)}"
    if np.isfinite(own["standard_error"]):
        text += f" (standard error {own['standard_error']:.2g})"
    if np.isfinite(own["supported"]):
        text += "; supported" if own["supported"] else "; not supported"
    return text


def _price_text(own: dict[str, Any]) -> str:
    prices = [
        f"{own[name]:.4g} per unit of {what}"
        for name, what in (("shadow_price", "cost"), ("cell_price", "demand"))
        if own[name] > 0
    ]
    at = f" at prices of {' and '.join(prices)}" if prices else ""
    return f"{at}: net {own['net']:.4g}"


def decision_frame(decisions: Decisions, backend: str) -> Any:
    """A frame with a line for each unit."""
    if check_output(backend) == "default":
        raise ValueError("The 'backend' parameter must be 'pandas' or 'polars'. Got 'default'.")
    import narwhals as nw

    named = decisions.components
    names = ["dose"] if named is None else [f"dose_{name}" for name in named]
    columns = dict(zip(names, Doses.of(decisions.dose).table.T, strict=True))
    columns["reason"] = decisions.reason.tolist()
    columns |= {name: getattr(decisions, name) for name in UNIT_FIELDS if name != "reason_code"}
    return nw.to_native(nw.from_dict(columns, backend=backend))  # type: ignore[arg-type]
