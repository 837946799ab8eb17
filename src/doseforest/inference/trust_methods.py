"""The methods of a fitted forest that say how far its answers can be trusted."""

from __future__ import annotations

from doseforest.inference.doubts.doubt_methods import DoubtMethods
from doseforest.inference.heterogeneity.heterogeneity_methods import HeterogeneityMethods
from doseforest.inference.shapes.shape_methods import ShapeMethods


class TrustMethods(ShapeMethods, HeterogeneityMethods, DoubtMethods):
    """Shapes, tests of heterogeneity, sensitivity and refuters of a `GeneralizedCausalForest`."""
