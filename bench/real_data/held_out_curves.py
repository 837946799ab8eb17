"""Rows to learn from and units whose whole curves are published: IHDP with a dose, and three more.

`ihdp_split`: the Infant Health and Development Program with a continuous dose, on the fixed splits
of GIKS (Nagalapatti et al. 2024). `cadr_draw`: the confounded settings of IHDP-1, IHDP-3 and
Synth-1 of Bockel-Rickermann et al. (2024), training and validation rows together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.real_data.data_folder import read_data
from doseforest.base.dtypes import FloatArray, IntArray

IHDP_FILE = "ihdp_continuous_giks_50splits.npz"
IHDP_RESULTS = "published_giks_results_by_split.csv"
CADR_FILE = "cadr_three_sets_10_draws.npz"
CADR_RESULTS = "published_cadr_decomposition_tables.csv"
N_SPLITS, N_DRAWS = 50, 10
CADR_SETS = {"ihdp1": "IHDP-1", "ihdp3": "IHDP-3", "synth1": "Synth-1"}  # and their published names
CONFOUNDED = "d conf."

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutCurves:
    """Rows to learn from, and other units with their exact curves on a grid.

    Examples
    --------
    >>> rows = {"X": np.zeros((3, 1)), "treatment": np.ones(3), "y": np.ones(3)}
    >>> units = {"units": np.zeros((2, 1)), "response": np.array([[1.0, 3.0], [0.0, 0.0]])}
    >>> HeldOutCurves("toy", "Two units.", **rows, doses=np.array([0.0, 1.0]), **units).effect()
    array([[0., 2.],
           [0., 0.]])
    """

    name: str
    description: str
    X: FloatArray  # (n_rows, n_features)
    treatment: FloatArray  # (n_rows,)
    y: FloatArray  # (n_rows,)
    doses: FloatArray  # (n_doses,)
    units: FloatArray  # (n_units, n_features)
    response: FloatArray  # (n_units, n_doses)

    @property
    def baseline(self) -> float:
        """The lowest dose of the grid."""
        return float(self.doses[0])

    def effect(self) -> FloatArray:
        """Exact effects of the held-out units against the lowest dose, (n_units, n_doses)."""
        return self.response - self.response[:, :1]


def ihdp_split(split: int) -> HeldOutCurves:
    """One split of IHDP with a continuous dose: 471 rows, and the curves of 276 units."""
    arrays = read_data(IHDP_FILE)
    names = ("X", "t", "y", "idx_train", "idx_test", "doses_64", "response_64")
    require_arrays(IHDP_FILE, arrays, names)
    train, test = (_places(arrays, name, split) for name in ("idx_train", "idx_test"))
    if len(np.intersect1d(train, test)):
        raise ValueError(f"{IHDP_FILE} must not test on training rows. Got some in split {split}.")
    X, response = arrays["X"], arrays["response_64"]
    return held_out(
        IHDP_FILE,
        "ihdp",
        "Infants with a continuous dose.",
        rows=(X[train], arrays["t"][train], arrays["y"][train]),
        doses=arrays["doses_64"],
        units=(X[test], response[test]),
    )


def cadr_draw(name: str, draw: int) -> HeldOutCurves:
    """One draw of one of `CADR_SETS`."""
    arrays = read_data(CADR_FILE)
    names = [f"{name}/{draw}/{part}" for part in ("X", "t", "y", "X_test", "response")]
    require_arrays(CADR_FILE, arrays, ("doses", *names))
    X, dose, y, units, response = (arrays[part] for part in names)
    return held_out(
        CADR_FILE,
        f"cadr_{name}",
        f"{CADR_SETS[name]} with a confounded dose.",
        rows=(X, dose, y),
        doses=arrays["doses"],
        units=(units, response),
    )


def held_out(
    file: str,
    name: str,
    description: str,
    *,
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    doses: np.ndarray,
    units: tuple[np.ndarray, np.ndarray],
) -> HeldOutCurves:
    """Curves from arrays of a file, or ValueError where these do not fit together."""
    X, dose, y, features, response = (np.asarray(values, np.float64) for values in (*rows, *units))
    grid = np.asarray(doses, np.float64)
    if X.ndim != 2 or grid.ndim != 1 or features.ndim != 2:
        raise ValueError(
            f"{file} must have features in two dimensions and doses in one. Got shapes {X.shape}, "
            f"{features.shape} and {grid.shape}."
        )
    wanted = {
        "doses of rows": (dose, (len(X),)),
        "outcomes": (y, (len(X),)),
        "features of units": (features, (len(features), X.shape[1])),
        "curves": (response, (len(features), len(grid))),
    }
    for what, (values, shape) in wanted.items():
        if values.shape != shape:
            raise ValueError(f"{file} must have {what} of shape {shape}. Got {values.shape}.")
    checked = {what: values for what, (values, _) in wanted.items()}
    for what, values in {**checked, "features": X}.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{file} must have finite {what}. Got {_first_odd(values)}.")
    if len(grid) < 2 or not (np.diff(grid) > 0).all():
        raise ValueError(f"{file} must have ascending doses of curves. Got {grid}.")
    return HeldOutCurves(name, description, X, dose, y, grid, features, response)


def require_arrays(file: str, arrays: Arrays, names: tuple[str, ...]) -> None:
    """Raise ValueError where a file lacks arrays.

    Examples
    --------
    >>> require_arrays("curves.npz", {"X": np.ones(1)}, ("X", "t"))
    Traceback (most recent call last):
    ...
    ValueError: curves.npz must have the arrays X, t. Got X.
    """
    if not set(names) <= set(arrays):
        got = ", ".join(sorted(arrays)[:10])
        raise ValueError(f"{file} must have the arrays {', '.join(names)}. Got {got}.")


def published_ihdp() -> dict[str, dict[int, float]]:
    """Root mean integrated squared errors of IHDP as published: by method, then by split."""
    table = read_data(IHDP_RESULTS)
    _require_columns(IHDP_RESULTS, table, ("dataset", "method", "split", "root_mise"))
    rows = table[table["dataset"] == "ihdp"]
    errors = zip(rows["method"], rows["split"], rows["root_mise"], strict=True)
    by_method: dict[str, dict[int, float]] = {}
    for method, split, error in errors:
        by_method.setdefault(str(method), {})[int(split)] = float(error)
    return by_method


def published_cadr(name: str, policy: bool = False) -> dict[str, tuple[float, float]]:
    """Mean and deviation over draws by method, of one of `CADR_SETS`; MISE, or policy errors."""
    table = read_data(CADR_RESULTS)
    _require_columns(CADR_RESULTS, table, ("section", "method", "scenario", "mean", "sd"))
    section = f"{'Policy error on ' if policy else ''}{CADR_SETS[name]} dataset"
    rows = table[(table["section"] == section) & (table["scenario"] == CONFOUNDED)]
    pairs = zip(rows["mean"].astype(float), rows["sd"].astype(float), strict=True)
    return dict(zip(rows["method"], pairs, strict=True))


def _require_columns(file: str, table: object, names: tuple[str, ...]) -> None:
    columns = [str(name) for name in table.columns]  # type: ignore[attr-defined]
    if not set(names) <= set(columns):
        raise ValueError(
            f"{file} must have the columns {', '.join(names)}. Got {', '.join(columns)}."
        )


def _places(arrays: Arrays, name: str, split: int) -> IntArray:
    """Rows of one split."""
    table, n_rows = arrays[name], len(arrays["X"])
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer) or split >= len(table):
        raise ValueError(
            f"{IHDP_FILE} must have rows of more than {split} splits in {name!r}. "
            f"Got shape {table.shape} of {table.dtype}."
        )
    places: IntArray = table[split]
    if places.min() < 0 or places.max() >= n_rows:
        raise ValueError(
            f"{IHDP_FILE} must have places of its {n_rows} rows in {name!r}. "
            f"Got {places.min()} to {places.max()}."
        )
    return places


def _first_odd(values: FloatArray) -> float:
    return float(values[~np.isfinite(values)][0])
