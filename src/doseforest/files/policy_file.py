"""The file of a policy: rules and prices as JSON, forests as arrays; no code, no pickle.

A policy file is a container like that of a forest, of the kind "policy". Its forests are stored as
in files of their own, with their arrays under a folder each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array
from doseforest.doses.dose_values import Doses
from doseforest.doses.stored_values import FLOATS, FileChecks
from doseforest.estimator.distilled_forest import DistilledForest
from doseforest.estimator.effect_forest import EffectForest
from doseforest.files.forest_file import READERS, read_model, write_model
from doseforest.policy.artifact.dose_policy import DosePolicy
from doseforest.policy.artifact.exploration import ConstantPolicy, ExplorationPolicy, Explore
from doseforest.policy.artifact.part_prices import PartPrices
from doseforest.policy.artifact.value_rules import rule_from_json
from doseforest.policy.risk import risk_from_json

Policy = DosePolicy | ConstantPolicy | ExplorationPolicy | Explore
Stored = tuple[dict[str, Any], dict[str, Array]]  # plain JSON, and named arrays

CHECKS = FileChecks("policy")
RULE_FIELDS = ("value", "cost", "demand")
PRICE_FIELDS = ("group_prices", "cell_prices")
FOREST_FIELDS = ("forest", "support", "errors")


def save_policy(policy: Any, path: str | Path) -> None:
    """Write a policy to one file; an interrupted write leaves nothing behind.

    Raises
    ------
    TypeError
        The policy or its forest is the user's own code.
    """
    try:
        metadata, arrays = store_policy(policy)
    except TypeError as error:
        raise TypeError(
            f"{error} A policy of GeneralizedCausalForest.distill() can be saved in any case."
        ) from error
    write_model(path, "policy", {"policy": metadata}, arrays)


def load_policy(path: str | Path, *, memory_map: bool = False, verify: bool = True) -> Policy:
    """Read what the ``save`` of a policy wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    memory_map : bool, default=False
        Leave the forest's arrays on disk and read them as they are used. Set it where several
        processes serve one policy: they share the pages. First decisions wait for the disk.
    verify : bool, default=True
        Check the checksums of the arrays. Without it a memory-mapped policy opens at once; damage
        then goes unnoticed.

    Returns
    -------
    DosePolicy, ConstantPolicy, ExplorationPolicy or Explore
        The policy, as it was saved.

    Raises
    ------
    ForestFileError
        The file is damaged, is not a policy, or was written by a newer version.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "control.dose"
    >>> ConstantPolicy(5.0).save(path)
    >>> load_policy(path).dose
    np.float64(5.0)
    """
    policy: Policy = read_model(path, {"policy": _policy_file}, memory_map, verify)
    return policy


def store_policy(policy: Any) -> Stored:
    """Take a policy apart into metadata, which is plain JSON, and named arrays."""
    for kind, (form, store, _) in POLICIES.items():
        if isinstance(policy, form):
            metadata, arrays = store(policy)
            return {"kind": kind, **metadata}, arrays
    raise TypeError(
        f"The policy must be one of {', '.join(form.__name__ for form, _, _ in POLICIES.values())} "
        f"to be saved. Got {type(policy).__name__} instead."
    )


def _policy_file(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> Policy:
    return read_policy(metadata["policy"], arrays)


def read_policy(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> Policy:
    """Put a policy together; ForestFileError, ValueError or the like where its parts do not fit."""
    kind = metadata["kind"]
    CHECKS.require(kind in POLICIES, f"is of the unknown kind {kind!r:.80}")
    policy: Policy = POLICIES[kind][2](metadata, arrays)
    return policy


def _store_dose_policy(policy: DosePolicy) -> Stored:
    metadata: dict[str, Any] = {
        name: None if getattr(policy, name) is None else getattr(policy, name).to_json()
        for name in (*RULE_FIELDS, *PRICE_FIELDS, "risk")
    }
    metadata |= _store_components(policy) | {
        "budget_price": policy.budget_price,
        "baseline": Doses.of(policy.baseline).plain,
        **{
            name: list(limit) if isinstance(limit, tuple) else limit
            for name, limit in (("min_dose", policy.min_dose), ("max_dose", policy.max_dose))
        },
    }
    arrays = {"doses": np.asarray(policy.plain_doses, FLOATS)}
    for name in FOREST_FIELDS:
        model = getattr(policy, name)
        metadata[name] = None
        if model is not None:
            metadata[name], stored = _store_forest(model)
            arrays |= {f"{name}/{key}": array for key, array in stored.items()}
    return metadata, arrays


def _read_dose_policy(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> DosePolicy:
    given: dict[str, Any] = {"doses": CHECKS.doses(arrays, "doses")}
    for name in RULE_FIELDS:
        CHECKS.require(metadata[name] is not None or name == "cost", f"has no rule of {name}")
        given[name] = None if metadata[name] is None else rule_from_json(metadata[name])
    for name in PRICE_FIELDS:
        given[name] = None if metadata[name] is None else PartPrices.from_json(metadata[name])
    given["risk"] = None if metadata["risk"] is None else risk_from_json(metadata["risk"])
    for name in FOREST_FIELDS:
        CHECKS.require(metadata[name] is not None or name != "forest", "has no forest")
        given[name] = None if metadata[name] is None else _read_forest(name, metadata, arrays)
    for name in ("budget_price", "baseline", "min_dose", "max_dose"):
        given[name] = metadata[name]
    given["components"] = metadata.get("components")
    return DosePolicy(**given)


def _store_components(policy: Any) -> dict[str, Any]:
    """Names of components, where doses have several: other files are as they were before these."""
    return {} if policy.components is None else {"components": list(policy.components)}


def _store_forest(model: Any) -> Stored:
    from doseforest.files.distilled_file import store_distilled_forest
    from doseforest.files.effect_file import store_effect_forest

    if isinstance(model, EffectForest):
        kind, (metadata, arrays) = "effect_forest", store_effect_forest(model)
    elif isinstance(model, DistilledForest):
        kind, (metadata, arrays) = "distilled_forest", store_distilled_forest(model)
    else:
        raise TypeError(
            "The 'forest' parameter must be a GeneralizedCausalForest, or what its distill() "
            f"returns, for a policy that is saved. Got {type(model).__name__} instead."
        )
    return {"kind": kind, **metadata}, arrays


def _read_forest(name: str, metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    described = metadata[name]
    kinds = ("effect_forest", "distilled_forest") if name == "forest" else ("distilled_forest",)
    CHECKS.require(described["kind"] in kinds, f"has a {name} of another kind")
    return READERS[described["kind"]](described, _folder(arrays, name))


def _folder(arrays: Mapping[str, Array], name: str) -> dict[str, Array]:
    start = f"{name}/"
    return {key[len(start) :]: array for key, array in arrays.items() if key.startswith(start)}


def _store_constant(policy: ConstantPolicy) -> Stored:
    return {"dose": Doses.of(policy.dose).plain, **_store_components(policy)}, {}


def _read_constant(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> ConstantPolicy:
    return ConstantPolicy(metadata["dose"], metadata.get("components"))


def _store_exploration(policy: ExplorationPolicy) -> Stored:
    plain = {"probabilities": policy.probabilities.tolist(), "key": policy.key, "salt": policy.salt}
    doses = np.asarray(Doses.of(policy.doses).plain, FLOATS)
    return plain | _store_components(policy), {"doses": doses}


def _read_exploration(
    metadata: Mapping[str, Any], arrays: Mapping[str, Array]
) -> ExplorationPolicy:
    values = {name: metadata[name] for name in ("probabilities", "key", "salt")}
    values["components"] = metadata.get("components")
    return ExplorationPolicy(CHECKS.doses(arrays, "doses"), **values)


def _store_explore(policy: Explore) -> Stored:
    metadata, arrays = _store_dose_policy(policy.policy)
    return {
        "policy": metadata,
        "share": policy.share,
        "probabilities": policy.probabilities.tolist(),
        "key": policy.key,
        "salt": policy.salt,
    }, arrays


def _read_explore(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> Explore:
    inner = _read_dose_policy(metadata["policy"], arrays)
    values = {name: metadata[name] for name in ("share", "probabilities", "key", "salt")}
    return Explore(inner, **values)


POLICIES: dict[str, tuple[type[Any], Callable[[Any], Stored], Callable[..., Policy]]] = {
    "dose_policy": (DosePolicy, _store_dose_policy, _read_dose_policy),
    "constant": (ConstantPolicy, _store_constant, _read_constant),
    "exploration": (ExplorationPolicy, _store_exploration, _read_exploration),
    "explore": (Explore, _store_explore, _read_explore),
}
