"""Seeds: one hash of (seed, purpose, owner), and no sums."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from doseforest.base.seeds import Purpose, derive
from doseforest.data import sampling

SOURCE = Path(__file__).parents[2] / "src"
SUM = re.compile(r"\bseed\b *[+*^]|[+*^] *(?:\w+\.)*_?seed\b|SEED_STEP")


def test_seeds_differ_by_seed_purpose_and_owners():
    seeds = [
        derive(seed, purpose, *owners)
        for seed in range(20)
        for purpose in Purpose
        for owners in ((), (1,), (2,), (1, 1), (1, 2), (2, 1))
    ]
    assert len(set(seeds)) == len(seeds)
    assert derive(3, Purpose.FOLDS) == derive(3, Purpose.FOLDS, 0)


def test_a_cluster_s_forest_of_a_fold_has_not_the_seed_of_a_forest_of_the_correction():
    # With sums of seeds the treatment forest of fold 5 drew the rows of the first forest of the
    # correction whose leaves have 5 rows: six folds were enough.
    folds = {
        derive(0, purpose, fold)
        for purpose in (Purpose.RESIDUAL_FOREST, Purpose.OUTCOME_FOREST, Purpose.TREATMENT_FOREST)
        for fold in range(200)
    }
    corrections = {
        derive(0, Purpose.CORRECTION_FOREST, number, leaf_size)
        for number in range(5)
        for leaf_size in range(1, 200)
    }
    assert len(folds) == 3 * 200
    assert len(corrections) == 5 * 199
    assert not folds & corrections


def test_neighbouring_seeds_and_owners_draw_other_rows():
    ids = np.arange(10_000)
    drawn = [
        np.random.default_rng(derive(seed, Purpose.FOLDS, repeat)).permutation(ids) % 2
        for seed in range(3)
        for repeat in range(3)
    ]
    agreement = np.corrcoef(drawn)[np.triu_indices(len(drawn), 1)]
    assert np.abs(agreement).max() < 0.05  # 5 standard errors


def test_purposes_of_seeds_are_not_those_of_hashed_rows():
    hashed = [own for name, own in vars(sampling).items() if name.startswith("DRAW_")]
    assert hashed
    assert max(hashed) < min(Purpose)


def test_nothing_is_added_to_a_seed():
    for path in SOURCE.rglob("*.py"):
        code = "\n".join(line.split("#")[0] for line in path.read_text("utf-8").splitlines())
        assert not SUM.search(re.sub(r'""".*?"""', "", code, flags=re.DOTALL)), path
