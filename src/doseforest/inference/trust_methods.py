"""The methods of a fitted forest that say how far its answers can be trusted."""

from __future__ import annotations

from doseforest.inference.shape_methods import ShapeMethods


class TrustMethods(ShapeMethods):
    """Shapes of a `GeneralizedCausalForest`."""
