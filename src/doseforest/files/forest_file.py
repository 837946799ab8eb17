"""The file of a model: one container for forests, effect forests and distilled forests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doseforest.base.container import ForestFileError, read_container, write_container
from doseforest.base.dtypes import Array
from doseforest.engine.forest import Forest
from doseforest.engine.stored_forest import read_forest, store_forest

if TYPE_CHECKING:
    from doseforest.estimator.distilled_forest import DistilledForest
    from doseforest.estimator.effect_forest import EffectForest

FORMAT_VERSION = 1  # of the model inside the container; raised when a reader must know more

# What reading values of a wrong type or size raises. A number too large for a float is an
# ArithmeticError, lists in lists in lists a RecursionError.
_MISFITS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def save_forest(forest: Forest, path: str | Path) -> None:
    """Write a forest to one file; an interrupted write leaves nothing behind."""
    write_model(path, "forest", *store_forest(forest))


def write_model(
    path: str | Path, kind: str, metadata: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write a model of one of the READERS' kinds, taken apart, to one file."""
    write_container(path, {"kind": kind, "format_version": FORMAT_VERSION, **metadata}, arrays)


def load_forest(
    path: str | Path, *, memory_map: bool = False, verify: bool = True
) -> Forest | EffectForest | DistilledForest:
    """Read what the ``save`` of a forest wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    memory_map : bool, default=False
        Leave the arrays on disk and read them as they are used. Set it where several processes
        serve one forest: they share the pages. First predictions wait for the disk.
    verify : bool, default=True
        Check the checksums of the arrays. Without it a memory-mapped forest opens at once; damage
        then goes unnoticed.

    Returns
    -------
    Forest, EffectForest or DistilledForest
        Of a CurveForest, a GeneralizedCausalForest, and its ``distill``.

    Raises
    ------
    ForestFileError
        The file is damaged, is not a forest, or was written by a newer version.

    Examples
    --------
    >>> import doseforest, numpy as np, tempfile, pathlib
    >>> x = np.arange(40.0)[:, None]
    >>> forest = doseforest.CurveForest(n_trees=4, random_state=0).fit(x, x)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.dose"
    >>> forest.save(path)
    >>> np.array_equal(doseforest.load_forest(path).predict(x), forest.predict(x))
    True
    """
    model: Forest | EffectForest | DistilledForest
    model = read_model(path, READERS, memory_map, verify)
    return model


def read_model(
    path: str | Path, readers: Mapping[str, Callable[..., Any]], memory_map: bool, verify: bool
) -> Any:
    """Read a file by the reader of its kind; a ForestFileError where it has none of them."""
    container = read_container(path, memory_map=memory_map, verify=verify)
    try:
        return _model(container.metadata, container.arrays, readers)
    except ForestFileError as error:
        raise ForestFileError(f"{path}: {error}") from None
    except _MISFITS as error:
        raise ForestFileError(
            f"{path}: the description of the forest is not valid "
            f"({type(error).__name__}: {error}); the file is damaged, save the forest again"
        ) from error


def _model(
    metadata: Mapping[str, Any],
    arrays: Mapping[str, Array],
    readers: Mapping[str, Callable[..., Any]],
) -> Any:
    kind, version = metadata["kind"], metadata["format_version"]
    if type(version) is not int or version < 1:
        raise ForestFileError(f"has the format version {version!r:.80}; the file is damaged")
    if version > FORMAT_VERSION:
        raise ForestFileError(
            f"was written by a newer doseforest (forest format {version}; this one reads up to "
            f"{FORMAT_VERSION}); upgrade doseforest"
        )
    if kind not in readers:
        cure = f"; read it with doseforest.{LOADERS[kind]}" if kind in LOADERS else ""
        raise ForestFileError(f"holds a {kind!r:.80}, not one of {sorted(readers)}{cure}")
    return readers[kind](metadata, arrays)


def _effect_forest(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> EffectForest:
    from doseforest.files.effect_file import read_effect_forest  # SciPy, not for other kinds

    return read_effect_forest(metadata, arrays)


def _distilled_forest(metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> DistilledForest:
    from doseforest.files.distilled_file import read_distilled_forest

    return read_distilled_forest(metadata, arrays)


READERS: dict[str, Callable[..., Forest | EffectForest | DistilledForest]] = {
    "forest": read_forest,
    "effect_forest": _effect_forest,
    "distilled_forest": _distilled_forest,
}

# Who reads files of a kind, for the error where another was asked.
LOADERS = {"policy": "load_policy", **dict.fromkeys(READERS, "load_forest")}
