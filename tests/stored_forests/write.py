"""Store small forests of the current format, to be run once at each release that changes it.

Usage: python tests/stored_forests/write.py
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from doseforest import CurveForest, EffectForest, GeneralizedCausalForest
from doseforest.corrections import Orthogonal, PublishedKernel
from doseforest.doses.dose_values import Doses
from doseforest.engine import RatioCurve, RidgeMoments
from doseforest.estimator.bags import growing_bags
from doseforest.estimator.corrections.kernel_curves import KernelForest, StabilizedCorrection
from doseforest.estimator.effect_forest import CorrectedOutcome
from doseforest.files.forest_file import FORMAT_VERSION
from doseforest.nuisance.outcome.boosting import BoostingRecipe, fit_boosting
from doseforest.nuisance.outcome.encoded_models import EncodedModel
from doseforest.nuisance.outcome.outcome_models import BoostedCore, Stack

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
    store_forests_of_leaf_curves()
    store_binary_effect_forest()
    store_effect_forests_of_other_doses()
    store_effect_forest_with_bags()


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
    swapped = GeneralizedCausalForest(
        honesty="swap", correction=Orthogonal(leaf_sizes=(5, 20)), **settings
    )
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
        correction=PublishedKernel(leaf_size=5),
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


def store_forests_of_leaf_curves() -> None:
    rng = np.random.default_rng(5)
    x, dose = rng.normal(size=(200, 3)), rng.uniform(-1, 1, size=200)
    outcome = x[:, 0] + dose * x[:, 1] + 0.5 * rng.normal(size=200)
    settings = {"n_trees": 4, "min_node_size": 10, "random_state": 0, "n_jobs": 1}
    sums = np.column_stack([(1 + dose) * outcome, (1 - dose) * outcome, 1 + dose, 1 - dose])
    ratios = CurveForest(leaf_curve=RatioCurve(0.25), **settings)
    ratios.fit(x, sums[:, :2], doses=[0.0, 1.0], leaf_channels=sums)
    store("ratio_curves_", ratios, ratios.predict, x[:20])
    products = np.column_stack([np.ones(200), dose, dose**2, outcome, dose * outcome])
    moments = CurveForest(leaf_curve=RidgeMoments((0.0, 1.5)), **settings)
    moments.fit(x, sums[:, :2], leaf_channels=products)
    store("ridge_moments_", moments, moments.predict, x[:20])


def small_forest(**parameters) -> GeneralizedCausalForest:
    """A forest of few trees, in one thread."""
    correction = Orthogonal(leaf_sizes=(5, 20))
    settings = {"n_trees": 8, "correction": correction, "random_state": 0, "n_jobs": 1}
    return GeneralizedCausalForest(**{**settings, **parameters})


def store_binary_effect_forest() -> None:
    rng = np.random.default_rng(6)
    x, dose = rng.normal(size=(200, 3)), rng.uniform(0, 4, size=200)
    outcome = (x[:, 0] + dose * x[:, 1] + rng.normal(size=200) > 0).astype(float)
    forest = small_forest(baseline=1.0).fit(x, outcome, treatment=dose)
    store_small_effects("effect_forest_binary_", forest, x, dose, outcome)


def store_effect_forests_of_other_doses() -> None:
    """A point mass, a few levels, two doses at once, arms, and splines of the dose."""
    rng = np.random.default_rng(7)
    x, e = rng.normal(size=(200, 3)), 0.5 * rng.normal(size=200)
    arm = rng.integers(0, 3, 200)
    size = np.select([arm == 1, arm == 2], [rng.uniform(1, 3, 200), rng.uniform(5, 9, 200)], 0.0)
    pair = rng.uniform(0, 4, size=(200, 2))
    for kind, dose, moved, settings in (
        ("point_mass", size * (arm == 1), size * (arm == 1), {"baseline": 0.0}),
        ("levels", 1.0 * arm, arm, {"baseline": 0.0}),
        ("joint", pair, pair.sum(axis=1), {"baseline": [1.0, 1.0]}),
        ("arms", np.column_stack([arm, size]), size, {"baseline": [0.0, 0.0]}),
        ("spline", pair[:, 0], pair[:, 0] ** 3 / 9, {"baseline": 1.0, "basis": "spline"}),
    ):
        outcome = 10 + x[:, 0] + moved * (1 + x[:, 1]) + e
        forest = small_forest(**settings).fit(x, outcome, treatment=dose)
        store_small_effects(f"effect_forest_{kind}_", forest, x, dose, outcome)
        if kind == "joint":
            compact = forest.distill(n_trees=3, min_node_size=20)
            store("distilled_forest_joint_", compact, compact.dose_response, x[:20])


def store_effect_forest_with_bags() -> None:
    rng = np.random.default_rng(8)
    x, dose = rng.normal(size=(60, 2)), rng.uniform(0, 4, size=60)
    outcome = 10 + dose * (1 + 0.5 * x[:, 1]) + 0.5 * rng.normal(size=60)
    forest = small_forest(correction="none", baseline=1.0, inference="bags")
    with patch.multiple(growing_bags, N_BAGS=16, BAG_SIZE=4):  # those of a fit are 2,000 trees
        forest.fit(x, outcome, treatment=dose)
    effects = store_small_effects("effect_forest_bags_", forest, x, dose, outcome)
    path = FOLDER / f"effect_forest_bags_format_{FORMAT_VERSION}.intervals.npy"
    if not path.exists():
        np.save(path, effects.effect_interval(x[:20], dose=2.0))


def store_small_effects(kind, forest, x, dose, outcome) -> EffectForest:
    """Store the model of a fit with outcome models of a few trees."""
    own = Doses.of_table(dose).values if np.ndim(dose) == 2 else dose
    effects = with_small_outcome_models(forest.model_, x, own, outcome)
    store(kind, effects, effects.dose_response, x[:20])
    return effects


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
