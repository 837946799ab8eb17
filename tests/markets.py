"""Made-up markets whose dose-response curves are known: forests that need no fit, and units."""

import numpy as np

from doseforest.doses.curve_effects import CurveEffects, dose_table
from doseforest.policy import DiscountCost, Response

DISCOUNTS = np.array([0.0, 0.1, 0.2, 0.3])
MARGIN, SPENT = Response("margin"), DiscountCost("fare")


class KnownCurves(CurveEffects):
    """Orders that rise with the discount: the more, the larger the second feature."""

    baseline = 0.0

    def dose_response(self, X, doses=None):
        X = np.asarray(X)
        table = dose_table(DISCOUNTS if doses is None else doses, len(X)).values
        usual, taste = X[:, :1], X[:, 1:2]
        return usual + 0.7 * (1 - usual) * (1 - np.exp(-taste * table))


def market(n=400, seed=0):
    """Features and the columns that rules name."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0.05, 0.5, n), rng.gamma(2, 2, n)])
    fare = rng.gamma(4, 5, n)
    context = {
        "fare": fare,
        "margin": 0.25 * fare,
        "region": rng.choice(["north", "south"], n),
        "cell": rng.integers(0, 6, n),
        "largest": rng.choice([0.1, 0.2, 0.3], n),
        "rider": np.arange(n),
    }
    return X, context
