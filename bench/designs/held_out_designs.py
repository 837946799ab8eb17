"""Published splits and draws of data whose curves are known, as designs of the studies.

A seed is the number of a split or draw; the data are no part of the repository, see
`bench.real_data`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from bench.real_data.held_out_curves import (
    CADR_SETS,
    N_DRAWS,
    N_SPLITS,
    HeldOutCurves,
    cadr_draw,
    ihdp_split,
)


@dataclass(frozen=True, slots=True)
class PublishedSplits:
    """Splits that others were measured on.

    Examples
    --------
    >>> {design.name: design.n_draws for design in HELD_OUT_DESIGNS.values()}
    {'ihdp': 50, 'cadr_ihdp1': 10, 'cadr_ihdp3': 10, 'cadr_synth1': 10}
    """

    name: str
    description: str
    n_rows: int  # to learn from
    n_draws: int
    read: Callable[[int], HeldOutCurves]  # of the number of a split

    def draw(self, n: int | None = None, seed: int = 0) -> HeldOutCurves:
        """The split of that number; of its rows the first `n`, by default all."""
        if not 0 <= seed < self.n_draws:
            raise ValueError(
                f"The 'seed' parameter of {self.name} must be the number of a split, from 0 to "
                f"{self.n_draws - 1}. Got {seed!r} instead."
            )
        data = self.read(seed)
        return replace(data, X=data.X[:n], treatment=data.treatment[:n], y=data.y[:n])


def _cadr(name: str, n_rows: int) -> PublishedSplits:
    about = f"{CADR_SETS[name]} with a confounded dose."
    return PublishedSplits(f"cadr_{name}", about, n_rows, N_DRAWS, partial(cadr_draw, name))


HELD_OUT_DESIGNS: dict[str, PublishedSplits] = {
    design.name: design
    for design in (
        PublishedSplits("ihdp", "Infants with a continuous dose.", 471, N_SPLITS, ihdp_split),
        _cadr("ihdp1", 596),
        _cadr("ihdp3", 596),
        _cadr("synth1", 559),
    )
}
