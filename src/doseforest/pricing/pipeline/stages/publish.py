"""The policy is written to one file that a service reads, and is tried before it goes out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import doseforest
from doseforest.base.atomic_files import replacing
from doseforest.base.plain_json import write_json
from doseforest.evaluation.predicted_curves import predicted_curves
from doseforest.policy import load_policy, unit_table
from doseforest.pricing.pipeline import roles
from doseforest.pricing.pipeline.manifest import file_digest
from doseforest.pricing.pipeline.model_names import FOREST
from doseforest.pricing.pipeline.pipeline_models import load_model
from doseforest.pricing.pipeline.planned_policies import policy_of, read_plan, read_selection
from doseforest.pricing.pipeline.problems import PipelineError
from doseforest.pricing.pipeline.row_tables import read_table
from doseforest.pricing.pipeline.steps import CARD, POLICY, UNITS

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig
    from doseforest.pricing.pipeline.steps import Step

TRIED = 1000  # units that the file must decide on like the policy in memory


def run(step: Step, config: PipelineConfig, drafts: Path) -> dict[str, Any]:
    """Write the policy and its card, and a copy where a target is given."""
    selected = read_selection(config)["selected"]
    plan = read_plan(selected, config)
    units = read_table(config.workspace / UNITS)
    X = roles.features(units, config)
    model = load_model(selected, config)
    loss = None
    if selected != FOREST:
        model, loss = _as_table(model, X, np.asarray(plan["doses"]), config)
    policy = policy_of(model, plan, config)
    draft = drafts / Path(POLICY).name
    policy.save(draft)
    _check_file(policy, draft, X.head(TRIED), units.head(TRIED))
    card = {
        "model": selected,
        "kept as": "forest" if loss is None else "table of its curves",
        "loss of the table": loss,
        "features": list(X.columns),
        "columns": list(policy.columns),
        "doses": plan["doses"],
        "price": plan["price"],
        "budget per unit": plan["budget"],
        "predicted gain per unit": plan["predicted gain"],
        "held-out": plan["held-out"],
        "sha256": file_digest(draft),
        "doseforest": doseforest.__version__,
    }
    write_json(drafts / Path(CARD).name, card, indent=1)
    for target in step.copies:
        _copy(draft, target)
    return {"model": selected, "bytes": draft.stat().st_size, "sha256": card["sha256"]}


def _as_table(model: Any, X: Any, doses: Any, config: PipelineConfig) -> tuple[Any, float]:
    """A model that is no forest of ours as a small forest of its curves, and what that loses."""
    curves = predicted_curves(model, X, doses)
    table = unit_table(X, curves, doses, random_state=config.pipeline.seed)
    gap = np.asarray(table.dose_response(X)) - curves
    return table, float(np.sqrt(np.mean(gap**2)))


def _check_file(policy: Any, path: Path, X: Any, context: Any) -> None:
    """The file decides as the policy does, or nothing is published."""
    stored = load_policy(path).decide(X, context)
    if not np.array_equal(stored.dose_index, policy.decide(X, context).dose_index):
        raise PipelineError("The policy decides otherwise once it is saved; nothing is published.")


def _copy(draft: Path, target: Path) -> None:
    """A copy that appears whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as beside:
        shutil.copyfile(draft, beside)
