"""The marketplace in pictures: its city, its hours, its riders' answers, its matching."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from doseforest.pricing.market.city import N_HOURS
from doseforest.pricing.market.demand import tastes_of
from doseforest.pricing.market.marketplace import Marketplace
from doseforest.pricing.market.matching import expected_orders
from doseforest.pricing.market.regimes import MAX_DISCOUNT, REGIMES
from doseforest.report.pictures import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    legend_above,
    plain_axes,
    pyplot,
    titled,
)

SHOWN = 12  # curves of each kind of rider
TYPICAL = 0.6  # share of a kind among the riders of a view that stands for it
CITY_DAYS = (1, 2)  # workdays
COLOURS = (BLUE, ORANGE, GREEN)  # of commuters, savers, leisure


def plot_request_curves(market: Marketplace, *, seed: int = 0, ax: Any | None = None) -> Any:
    """Draw request probabilities of some views, by the kind of rider; black: the mean.

    Parameters
    ----------
    market : Marketplace
        The marketplace.
    seed : int, default=0
        Seed of the views.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        The picture.

    Examples
    --------
    >>> len(plot_request_curves(Marketplace()).lines) > 3
    True
    """
    ax = plain_axes(ax)
    traffic = market.draw_traffic(days=7, cells=np.arange(0, market.n_cells, 40), seed=seed)
    grid = np.linspace(0.0, MAX_DISCOUNT, 121)
    doses = np.broadcast_to(grid[:, None], (len(grid), market.n_options))
    tastes = tastes_of(traffic.X, market.table, market.options)
    for place, (kind, colour) in enumerate(zip(market.table.riders, COLOURS, strict=True)):
        alike = np.flatnonzero(tastes.shares[:, place] > TYPICAL)
        X = traffic.X[alike[:: max(len(alike) // SHOWN, 1)][:SHOWN]]
        curves = market.mean(np.broadcast_to(doses, (len(X), *doses.shape)), X)
        ax.plot(grid, curves.T, color=colour, linewidth=0.7, alpha=0.6)
        ax.plot([], [], color=colour, label=kind.name)
    some = traffic.X[::10]
    mean = market.mean(np.broadcast_to(doses, (len(some), *doses.shape)), some).mean(axis=0)
    ax.plot(grid, mean, color=INK, linewidth=2.5)
    ax.set(xlabel="discount", ylabel="probability of a request", ylim=(0, 1))
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    titled(ax, market.regime)
    return ax


def plot_city(market: Marketplace, *, ax: Any | None = None) -> Any:
    """Draw zones by place; size is business, colour the income, a triangle the airport.

    Parameters
    ----------
    market : Marketplace
        The marketplace.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        The picture.

    Examples
    --------
    >>> len(plot_city(Marketplace()).collections) > 1
    True
    """
    ax = plain_axes(ax)
    zones = market.city.zones
    flies = zones.airport > 0
    for marks, shape in ((~flies, "o"), (flies, "^")):
        drawn = ax.scatter(
            *zones.places[marks].T,
            s=110 + 450 * zones.business[marks],
            c=zones.income[marks],
            marker=shape,
            cmap="viridis",
            vmin=0,
            vmax=1,
            edgecolors=INK,
            linewidths=0.6,
        )
    for zone, place in enumerate(zones.places):
        ax.annotate(str(zone), place, ha="center", va="center", fontsize="x-small", color="white")
    ax.figure.colorbar(drawn, ax=ax, label="income")
    ax.set(xlabel="km", ylabel="km")
    ax.margins(0.12)
    titled(ax, "Zones", "size: business, triangle: airport")
    return ax


def plot_hours(market: Marketplace, *, seed: int = 0, ax: Any | None = None) -> Any:
    """Draw views, requests, drivers and orders of an average cell over the hours of workdays.

    Parameters
    ----------
    market : Marketplace
        The marketplace.
    seed : int, default=0
        Seed of the traffic.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        The picture.

    Examples
    --------
    >>> len(plot_hours(Marketplace()).lines) >= 4
    True
    """
    ax = plain_axes(ax)
    traffic = market.draw_traffic(days=np.array(CITY_DAYS), seed=seed)
    result = market.expected(traffic, 0.0)
    hour = market.city.hour[traffic.visit_cells]
    count = np.bincount(hour, minlength=N_HOURS)
    lines = {
        "views": (traffic.by_visit(np.ones(len(traffic))), GREY),
        "drivers": (traffic.drivers, GREEN),
        "requests": (traffic.by_visit(result.requests), BLUE),
        "orders": (traffic.by_visit(result.orders), INK),
    }
    for name, (values, colour) in lines.items():
        means = np.bincount(hour, values, N_HOURS) / count
        ax.plot(np.arange(N_HOURS), means, color=colour, linewidth=2, label=name)
    ax.set(xlabel="hour of a workday", ylabel="in an average cell", ylim=(0, None))
    ax.set_xticks(range(0, N_HOURS + 1, 4))
    legend_above(ax)
    return ax


def plot_matching(*, ax: Any | None = None) -> Any:
    """Draw expected orders against requests, for some numbers of drivers.

    Parameters
    ----------
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
        The picture.

    Examples
    --------
    >>> plot_matching().get_xlabel()
    'requests'
    """
    ax = plain_axes(ax)
    requests = np.linspace(0.0, 40.0, 161)
    for drivers, colour in zip((5.0, 10.0, 20.0), COLOURS, strict=True):
        orders = expected_orders(requests, np.full(len(requests), drivers))
        ax.plot(requests, orders, color=colour, linewidth=2, label=f"{drivers:g} drivers")
        ax.axhline(drivers, color=colour, linewidth=0.8, linestyle=":")
    ax.plot([0, 20], [0, 20], color=GREY, linewidth=1, zorder=0)
    ax.set(xlabel="requests", ylabel="expected orders", xlim=(0, 40), ylim=(0, 21))
    legend_above(ax)
    return ax


def plot_marketplace(path: Any) -> Path:
    """Draw everything on one page, into a file.

    Parameters
    ----------
    path : str or Path
        The file, a PNG or another kind that matplotlib writes.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> plot_marketplace(Path(tempfile.mkdtemp()) / "marketplace.png").name
    'marketplace.png'
    """
    plt = pyplot()
    figure, axes = plt.subplots(2, 3, figsize=(12.0, 6.8), layout="constrained")
    for name, ax in zip(REGIMES, axes[0], strict=True):
        plot_request_curves(Marketplace(name), ax=ax)
    for ax in axes[0, 1:]:
        ax.set_ylabel("")
    axes[0, 0].legend(frameon=False, fontsize="small", loc="upper left")
    plot_city(Marketplace(), ax=axes[1, 0])
    plot_hours(Marketplace(), ax=axes[1, 1])
    plot_matching(ax=axes[1, 2])
    target = Path(path)
    figure.savefig(target, dpi=72)
    plt.close(figure)
    return target
