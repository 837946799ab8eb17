"""Few doses that stand for all observed ones."""

from __future__ import annotations

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.dose_values import AnyDoses, Doses
from doseforest.doses.grids import dose_sample

N_NODES = {1: 31, 2: 11, 3: 5}  # along each component, by their number


def representative_doses(
    dose: AnyDoses, weights: FloatArray | None = None
) -> tuple[DoseArray, FloatArray]:
    """Doses and the shares of the weight that they stand for.

    Of one component: the distinct doses where there are at most 31, else quantiles. Of several:
    those of the first component, and with each of them those of the others among the rows nearest
    to it.

    >>> representative_doses(np.array([0.0, 1.0, 1.0, 2.0]))
    (array([0., 1., 2.]), array([0.25, 0.5 , 0.25]))
    >>> table = np.random.default_rng(0).random((500, 2))
    >>> nodes, shares = representative_doses(Doses.of_table(table).values)
    >>> nodes.shape, float(shares.sum().round(9))
    ((121,), 1.0)
    """
    own = np.ones(len(dose)) if weights is None else weights
    table = Doses.of(dose).table[own > 0]
    nodes, shares = _nodes(table, own[own > 0], N_NODES[Doses.of(dose).n_components])
    return Doses.of_table(nodes).values, shares


def _nodes(table: FloatArray, weights: FloatArray, n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes (n_nodes, n_components) and shares, component by component."""
    first, shares = _quantiles(table[:, 0], weights, n_nodes)
    if table.shape[1] == 1:
        return first[:, None], shares
    # Each row belongs to the node nearest to its first component.
    owner = np.searchsorted((first[1:] + first[:-1]) / 2, table[:, 0])
    nodes, parts = [], []
    for place, value in enumerate(first):
        mine = owner == place
        share = weights[mine].sum() / weights.sum()
        rest, rest_shares = _nodes(table[mine, 1:], weights[mine], n_nodes)
        nodes.append(np.column_stack([np.full(len(rest), value), rest]))
        parts.append(share * rest_shares)
    return np.concatenate(nodes), np.concatenate(parts)


def _quantiles(
    values: FloatArray, weights: FloatArray, n_nodes: int
) -> tuple[FloatArray, FloatArray]:
    sample = dose_sample(values, weights)
    nodes, shares = sample.levels()
    if len(nodes) > n_nodes:
        drawn = sample.quantiles((np.arange(n_nodes) + 0.5) / n_nodes)
        nodes, counts = np.unique(drawn, return_counts=True)
        shares = counts / n_nodes
    return nodes, shares
