"""Who is compared: the rows of Table 2, and two more for the ranking of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.real_data import DoseRows
from bench.studies.result_keys import digest_of
from doseforest import GeneralizedCausalForest
from doseforest.baselines import LinearCausalForest, xgboost_trees

XGBOOST, CF, GCF = "XGBoost", "CF", "GCF"
OUTCOME, FEW_ROWS = "GCF's outcome model", "XGBoost, a tenth of the rows"
TABLE_2 = (XGBOOST, CF, GCF)
N_FEW = 10


@dataclass(frozen=True, slots=True)
class QiniEffort:
    """How much work the study does."""

    n_train: int = 20_000
    n_test: int = 1_000_000
    n_trees: int = 400  # of our forest
    n_cf_trees: int = 200
    cf_leaf: int = 20
    outcome_model: Any = "stack"
    blocks: tuple[int, ...] = (10_000, 50_000)  # rows of the parts of the test rows
    seed: int = 1000
    n_jobs: int = 2

    @property
    def state(self) -> str:
        """Digest of what results depend on."""
        sizes = (self.n_train, self.n_test, self.n_trees, self.n_cf_trees, self.cf_leaf)
        return digest_of(sizes, self.outcome_model, self.blocks, self.seed)

    def text(self) -> str:
        """Settings, for a report."""
        return (
            f"Fits have at most {self.n_train:,} rows. XGBoost: {xgboost_settings()} on covariates "
            f"and dose. CF: a causal forest linear in the dose (`LinearCausalForest`), "
            f"{self.n_cf_trees} trees with leaves of {self.cf_leaf} rows or more. GCF: "
            f"`GeneralizedCausalForest` by default, with the chances of the doses known."
        )


def xgboost_settings() -> str:
    """Settings of XGBoost, for a report."""
    own = xgboost_trees().regressor
    return (
        f"{own.n_estimators} trees of depth {own.max_depth}, learning rate {own.learning_rate}, "
        f"subsamples of {own.subsample}"
    )


def fit_table_2(rows: DoseRows, effort: QiniEffort) -> dict[str, Any]:
    """Fit the models of Table 2 to the same rows."""
    xgboost = xgboost_trees(random_state=effort.seed, n_jobs=effort.n_jobs)
    linear = LinearCausalForest(
        effort.n_cf_trees,
        min_node_size=effort.cf_leaf,
        random_state=effort.seed,
        n_jobs=effort.n_jobs,
    )
    forest = GeneralizedCausalForest(
        effort.n_trees,
        density=rows.density,
        outcome_model=effort.outcome_model,
        random_state=effort.seed,
        n_jobs=effort.n_jobs,
        progress=False,
    )
    return {
        XGBOOST: xgboost.fit(rows.X, rows.y, treatment=rows.treatment),
        CF: linear.fit(rows.X, rows.y, treatment=rows.treatment),
        GCF: forest.fit(rows.X, rows.y, treatment=rows.treatment, groups=rows.groups),
    }


def with_others(models: Mapping[str, Any], rows: DoseRows, effort: QiniEffort) -> dict[str, Any]:
    """Two more models, so that there is a ranking to speak of."""
    few = rows.take(np.arange(len(rows)) < len(rows) // N_FEW)
    small = xgboost_trees(random_state=effort.seed, n_jobs=effort.n_jobs)
    return {
        **models,
        OUTCOME: models[GCF].outcome_model_,
        FEW_ROWS: small.fit(few.X, few.y, treatment=few.treatment),
    }
