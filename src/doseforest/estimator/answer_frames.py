"""Answers as pandas or polars frames that line up with the rows that were asked about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses, dose_text

OUTPUTS = ("default", "pandas", "polars")  # "default": numpy arrays


class FramedAnswers:
    """Answers as arrays, or as frames where `set_output` says so."""

    output: str = "default"

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what answers for units come in, as scikit-learn's transformers do.

        Curves become a frame with a column per dose, effects a series, both with the index of `X`
        where that is a pandas frame.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            "default" is numpy; None leaves things as they are.

        Returns
        -------
        forest
            One that answers so: an estimator itself; of a loaded forest, which never changes, a
            copy that shares its arrays.
        """
        if transform is None:
            return self
        return replace(self, output=check_output(transform))  # type: ignore[type-var]


class EstimatorOutput:
    """Output of an estimator, which is set in place and which its clones keep."""

    _output = "default"

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what answers for units come in.

        Curves become a frame with a column per dose, effects a series, both with the index of `X`
        where that is a pandas frame.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            "default" is numpy; None leaves things as they are.

        Returns
        -------
        GeneralizedCausalForest
            The same object.
        """
        if transform is not None:
            self._output = check_output(transform)
        return self

    def __sklearn_clone__(self) -> Self:
        copied: Self = super().__sklearn_clone__()  # type: ignore[misc]
        return copied.set_output(transform=self._output)


def check_output(transform: Any) -> str:
    """Return the name of a kind of output, or raise.

    >>> check_output("polars")
    'polars'
    """
    if transform not in OUTPUTS:
        raise ValueError(
            f"The 'transform' parameter of set_output must be one of {', '.join(OUTPUTS)} or None. "
            f"Got {transform!r} instead."
        )
    if transform != "default":
        _narwhals(transform)
    return str(transform)


def dose_names(doses: Doses) -> list[str]:
    """Names of columns, one per dose, which read as numbers: six digits, or all to tell them apart.

    >>> dose_names(Doses.of([0.0, 2.5, 10 / 3]))
    ['0', '2.5', '3.33333']
    """
    names = [dose_text(dose) for dose in doses]
    if len(set(names)) < len(names):
        names = [repr(dose.plain) for dose in doses]
    return names


def as_frame(values: Any, doses: Any, X: Any, output: str) -> Any:
    """One column per dose; as it is by default.

    Parameters
    ----------
    values : array of shape (n_units, n_doses)
    doses : float, array of shape (n_doses,) or of shape (n_units, n_doses)
        Columns are named by a grid; where every unit has its own doses, `dose_0`, `dose_1`, ….
    X : table of shape (n_units, n_features)
        Whose rows the values are about: a pandas frame lends its index.
    output : {"default", "pandas", "polars"}
    """
    if output == "default":
        return values
    nw = _narwhals(output)
    if np.ndim(doses) == 2:
        names = [f"dose_{column}" for column in range(values.shape[1])]
    else:
        names = dose_names(Doses(np.atleast_1d(doses)))
    if len(set(names)) < len(names):
        raise ValueError(
            "The 'doses' parameter must not repeat a dose where columns are named by doses. "
            f"Got {max(names, key=names.count)} more than once instead."
        )
    frame = nw.from_dict(dict(zip(names, values.T, strict=True)), backend=output)
    return _indexed(frame, X, output)


def as_series(values: FloatArray, name: str, X: Any, output: str) -> Any:
    """A named series, one value per unit; as it is by default."""
    if output == "default":
        return values
    return _indexed(_narwhals(output).new_series(name, values, backend=output), X, output)


def _indexed(answer: Any, X: Any, output: str) -> Any:
    """Native form of an answer, with the index of the table that it is about."""
    nw = _narwhals(output)
    native = nw.to_native(answer)
    asked = nw.from_native(X, pass_through=True, eager_only=True)
    index = nw.maybe_get_index(asked) if isinstance(asked, nw.DataFrame) else None
    if output == "pandas" and index is not None:
        native.index = index
    return native


def _narwhals(output: str) -> Any:
    """The narwhals package, once what it is to make frames with is there."""
    import importlib

    try:
        importlib.import_module(output)
    except ImportError as error:
        raise ImportError(
            f"Output as {output} needs {output}. Install it with: pip install {output}"
        ) from error
    import narwhals as nw

    return nw
