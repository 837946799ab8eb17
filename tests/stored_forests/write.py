"""Store small forests of the current format, to be run once at each release that changes it.

Usage: python tests/stored_forests/write.py
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from doseforest import CurveForest, EffectForest, GeneralizedCausalForest
from doseforest.corrections.kernel_curves import KernelForest, StabilizedCorrection
from doseforest.nuisance.boosting import BoostingRecipe, fit_boosting
from doseforest.nuisance.encoded_models import EncodedModel
from doseforest.nuisance.outcome_models import BoostedCore, Stack
from doseforest.prediction.effect_forest import CorrectedOutcome
from doseforest.prediction.forest_file import FORMAT_VERSION

FOLDER = Path(__file__).parent


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    doses = np.linspace(0, 1, 4)
    y = np.nan_to_num(x[:, :1]) * doses + rng.normal(size=(400, 4)) / 4
    forest = CurveForest(5, random_state=0).fit(x, y, doses=doses)
    store("", forest, forest.predict, x[:20])
    store_categorical_forest()
    store_wide_forest()
    store_effect_forests()
    store_categorical_effect_forest()


def store_categorical_forest() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, [20, 5], size=(400, 2)).astype(float)
    y = np.sin(codes[:, :1]) * np.linspace(0, 1, 4) + codes[:, 1:] % 2
    codes[rng.random(codes.shape) < 0.1] = np.nan
    forest = CurveForest(5, random_state=0, categorical_features=[0, 1]).fit(codes, y)
    store("categorical_", forest, forest.predict, np.vstack([codes[:20], [[99.0, 99.0]]]))


def store_wide_forest() -> None:
    rng = np.random.default_rng(2)
    codes = np.column_stack([rng.permutation(900) % 300, rng.integers(0, 5, 900)]).astype(float)
    y = np.sin(codes[:, :1]) * np.linspace(0, 1, 4) + codes[:, 1:] % 2
    codes[rng.random(codes.shape) < 0.1] = np.nan
    forest = CurveForest(3, random_state=0, categorical_features=[0, 1]).fit(codes, y)
    store("categorical_wide_", forest, forest.predict, np.vstack([codes[:20], [[999.0, 99.0]]]))


def store_effect_forests() -> None:
    rng = np.random.default_rng(3)  # of few seeds whose small forests have offsets and means
    x, dose = rng.normal(size=(150, 3)), rng.uniform(0, 4, size=150)
    outcome = 10 + x[:, 0] + dose * (1 + 0.5 * x[:, 1]) + 0.5 * rng.normal(size=150)
    settings = {"n_trees": 8, "baseline": 1.0, "random_state": 0, "n_jobs": 1}
    swapped = GeneralizedCausalForest(honesty="swap", min_node_size=(5, 20), **settings)
    swapped.fit(x, outcome, treatment=dose)
    effects = with_small_outcome_models(swapped.model_, x, dose, outcome)
    store("effect_forest_", effects, effects.dose_response, x[:20])
    kernel = GeneralizedCausalForest(correction="kernel", **settings)
    kernel.fit(x, outcome, treatment=dose)
    published = with_small_outcome_models(kernel.model_, x, dose, outcome)
    store("effect_forest_kernel_", published, published.dose_response, x[:20])
    grid = published.doses
    curves = x[:, :1] * grid
    grown = CurveForest(4, min_node_size=5, random_state=0)
    grown.fit(x, curves, leaf_channels=np.hstack([curves, 1 + curves**2]))
    correction = StabilizedCorrection(grid, (KernelForest(grown.forest_, 0.25, 0.5),), grid / 9)
    part = CorrectedOutcome(published.parts[0].outcome, correction)
    stabilized = replace(published, parts=(part,))
    store("effect_forest_stabilized_", stabilized, stabilized.dose_response, x[:20])
    compact = swapped.distill(n_trees=3, min_node_size=20)
    store("distilled_forest_", compact, compact.dose_response, x[:20])


def store_categorical_effect_forest() -> None:
    rng = np.random.default_rng(4)
    x = np.column_stack([rng.integers(0, 3, 150), rng.normal(size=150), rng.integers(0, 40, 150)])
    dose = rng.uniform(0, 4, size=150)
    outcome = 10 + x[:, 2] % 2 + dose * 2 * x[:, 0] + rng.normal(size=150)
    x[rng.random(x.shape) < 0.05] = np.nan
    forest = GeneralizedCausalForest(
        n_trees=8,
        min_node_size=(5, 20),
        correction="kernel",
        categorical_features=[0, 2],
        baseline=1.0,
        random_state=0,
        n_jobs=1,
    )
    forest.fit(x, outcome, treatment=dose)
    effects = with_small_outcome_models(forest.model_, x, dose, outcome)
    queries = np.vstack([x[:20], [[9.0, np.nan, 99.0]]])
    store("effect_forest_categorical_", effects, effects.dose_response, queries)
    compact = forest.distill(n_trees=3, min_node_size=20)
    store("distilled_forest_categorical_", compact, compact.dose_response, queries)


def with_small_outcome_models(model, x, dose, outcome) -> EffectForest:
    """Stacks of the spline core alone and with a few trees: those of a fit would fill the disk."""
    table = model.checked_table(x)
    codes = np.concatenate([block for _, block in table.blocks()])
    parts = []
    for part in model.parts:
        encoder = part.outcome.encoder if isinstance(part.outcome, EncodedModel) else None
        inner, numbers = part.outcome, codes
        if encoder is not None:
            inner, numbers = part.outcome.model, encoder.encode(codes)
        core = inner.members["core"]
        recipe = BoostingRecipe(8, 4, linear=True)
        trees = fit_boosting(numbers, dose, outcome - core.predict(numbers, dose), recipe)
        members = {"core": core, "core, boosted": BoostedCore(core, trees)}
        stack = Stack(members, {"core": 0.25, "core, boosted": 0.75})
        own = stack if encoder is None else EncodedModel(encoder, stack)
        parts.append(CorrectedOutcome(own, part.correction))
    return replace(model, parts=tuple(parts))


def store(kind, forest, answer, queries) -> None:
    path = FOLDER / f"{kind}format_{FORMAT_VERSION}.dose"
    if path.exists():
        print(f"{path.name} exists: a stored forest is never written twice")
        return
    forest.save(path)
    np.save(path.with_suffix(".queries.npy"), queries)
    np.save(path.with_suffix(".curves.npy"), answer(queries))


if __name__ == "__main__":
    main()
