"""XGBoost on [X, T], read as dose-response curves."""

from __future__ import annotations

from doseforest.baselines.extra_packages import from_extra
from doseforest.baselines.outcome_regressors import OutcomeRegressor


def xgboost_trees(
    n_trees: int = 300,
    learning_rate: float = 0.05,
    max_depth: int = 4,
    subsample: float = 0.8,
    random_state: int = 0,
    n_jobs: int = 1,
) -> OutcomeRegressor:
    """Boosted trees of XGBoost on [X, T], from the extra `baselines`.

    The defaults suit some 1,000 rows: small trees, slow steps, each on a share of the rows.
    Missing features are welcome. For more rows, more trees.

    Parameters
    ----------
    n_trees : int, default=300
        Rounds of boosting. Raise it with the number of rows; time grows in proportion.
    learning_rate : float, default=0.05
        Share of each tree's prediction that is added. Lower it together with more trees.
    max_depth : int, default=4
        Depth of a tree. Raise it where features interact with the dose; small data then overfits.
    subsample : float, default=0.8
        Share of the rows that a tree sees.
    random_state : int, default=0
        Seed of the subsamples.
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    OutcomeRegressor
        Not fitted.

    Examples
    --------
    >>> model = xgboost_trees(n_trees=10)  # doctest: +SKIP
    >>> model.fit(X, y, treatment=dose).effect(X, dose=5.0, baseline=0.0)  # doctest: +SKIP
    """
    regressor = from_extra("xgboost", "XGBRegressor", baseline="xgboost_trees", package="XGBoost")
    return OutcomeRegressor(
        regressor(
            n_estimators=n_trees,
            learning_rate=learning_rate,
            max_depth=max_depth,
            subsample=subsample,
            tree_method="hist",
            random_state=random_state,
            n_jobs=n_jobs,
        )
    )
