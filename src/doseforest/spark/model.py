"""The fitted forest as a model of Spark ML: scores data frames, is saved and loaded anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pyspark.ml import Model
from pyspark.ml.util import MLReadable, MLWritable

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.curve_effects import dose_table, one_dose
from doseforest.estimator.averages.average_curves import AverageDoseResponse
from doseforest.estimator.effect_forest import EffectForest
from doseforest.report.overlap.overlap_report import OverlapReport
from doseforest.spark.cluster_averages import read_average
from doseforest.spark.frame_columns import (
    check_features,
    check_numeric,
    column,
    doses_column,
    features_array,
    text_places,
    texts_array,
    treatment_parameter,
)
from doseforest.spark.frame_input import without_pandas_warning
from doseforest.spark.local_only import local_answer
from doseforest.spark.params import ANSWERS, INPUTS, TableOfParams
from doseforest.spark.persistence import ForestReader, ForestWriter
from doseforest.spark.scoring import STRUCT, answers, served
from doseforest.spark.stored_overlap import read_report

ANSWER = "__doseforest_answer"  # of all answers, for a moment: no name that a data frame has


class SparkCausalForestModel(
    TableOfParams,
    Model,  # type: ignore[misc]
    MLWritable,  # type: ignore[misc]
    MLReadable,  # type: ignore[misc]
):
    """Answers of a fitted forest for the rows of data frames.

    `SparkCausalForest.fit`, `load` and `fromLocal` make it. ``transform`` adds columns of
    predictions, curves and effects.

    Parameters
    ----------
    forest : EffectForest or DistilledForest, optional
        What answers; Spark makes models without one where it reads them.
    summary : dict, optional
        What the fit did, as plain values.

    Examples
    --------
    >>> from doseforest.spark import SparkCausalForestModel  # doctest: +SKIP
    >>> model = SparkCausalForestModel.fromLocal(forest, doses=[0.05, 0.1])  # doctest: +SKIP
    >>> model.transform(test).select("effect").show()  # doctest: +SKIP
    """

    TABLE = {**INPUTS, **ANSWERS}

    def __init__(self, forest: Any = None, summary: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._take({})
        self._forest = forest
        self._summary = summary
        self._sent: Any = None

    def __getattr__(self, name: str) -> Any:
        instead = None if name.startswith("_") else local_answer(name)
        hint = "" if instead is None else f", which the local estimator has: {instead}"
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}.")

    @staticmethod
    def fromLocal(forest: Any, **params: Any) -> SparkCausalForestModel:  # noqa: N802
        """Score data frames with a forest that was fitted or loaded on this machine.

        Parameters
        ----------
        forest : GeneralizedCausalForest, EffectForest or DistilledForest
            The forest.
        **params
            Of the model, as ``featureCols``; by default the names of the forest's features.

        Returns
        -------
        SparkCausalForestModel
            The model.
        """
        own = getattr(forest, "model_", forest)
        for attribute in ("dose_response", "support", "save"):
            if not hasattr(own, attribute):
                raise TypeError(
                    "The 'forest' parameter must be a fitted forest of effects. "
                    f"Got {type(forest).__name__} instead."
                )
        model = SparkCausalForestModel(own)
        names = served(own).feature_names
        if names is not None and not {"featuresCol", "featureCols"} & set(params):
            params = {"featureCols": list(names), **params}
        model._set(**params)
        return model

    def take_over(self, estimator: Any) -> SparkCausalForestModel:
        """Take the parameters of the estimator that made this model.

        Parameters
        ----------
        estimator : SparkCausalForest
            The estimator.

        Returns
        -------
        SparkCausalForestModel
            The same object.
        """
        estimator._copyValues(self)
        self._resetUid(estimator.uid)
        return self

    def toLocal(self) -> Any:  # noqa: N802
        """The forest itself, as `doseforest.load_forest` would return it.

        Returns
        -------
        EffectForest or DistilledForest
            The forest.
        """
        return self._fitted

    def saveForest(self, path: str | Path) -> None:  # noqa: N802
        """Write the engine's forest file, on the driver; `doseforest.load_forest` reads it.

        Parameters
        ----------
        path : str or Path
            Where to write; a file that is there is replaced, never left half written.
        """
        self._fitted.save(path)

    @property
    def summary(self) -> dict[str, Any]:
        """What the fit chose and did, as plain values; empty for a forest from elsewhere."""
        return {} if self._summary is None else self._summary

    def overlapReport(self) -> OverlapReport:  # noqa: N802
        """Whether the training rows can answer: who could have had which dose, weights, balance.

        ``print(report)`` shows tables and what is wrong, ``report.plot()`` draws them.

        Returns
        -------
        OverlapReport
            The report.
        """
        stored = self.summary.get("overlap")
        if stored is None:
            raise ValueError(
                "The model must be fitted on Spark with overlap=True, to a dose of one component, "
                "to report on the overlap. "
                "Got one without a report instead."
            )
        return read_report(stored)

    def averageCurve(self) -> AverageDoseResponse:  # noqa: N802
        """Average dose-response of the training rows, doubly robust, with ``interval()``.

        At the doses of the fit. Standard errors are by groups where the fit had any.

        Returns
        -------
        AverageDoseResponse
            The curve with its covariance.
        """
        stored = self.summary.get("average")
        if stored is None:
            raise ValueError(
                "The model must be fitted on Spark with overlap=True, to a dose of one component, "
                "for intervals of averages. "
                "Got one without them instead."
            )
        return read_average(stored)

    @property
    def _fitted(self) -> Any:
        if self._forest is None:
            raise ValueError("The model must be fitted or loaded. Got an empty one instead.")
        return self._forest

    def write(self) -> ForestWriter:
        """Writer to any path that Spark can write to.

        Returns
        -------
        ForestWriter
            Its ``save`` writes forest and parameters.
        """
        return ForestWriter(self)

    @classmethod
    def read(cls) -> ForestReader:
        """Reader of what `write` wrote.

        Returns
        -------
        ForestReader
            Its ``load`` reads forest and parameters.
        """
        return ForestReader(cls)

    def averageDoseResponse(self, dataset: Any) -> FloatArray:  # noqa: N802
        """Mean of the curves of a data frame's rows at the doses.

        Parameters
        ----------
        dataset : DataFrame
            Rows with the features.

        Returns
        -------
        array of shape (n_doses,)
            The mean curve, without a correction.
        """
        from pyspark.sql import functions as F  # noqa: N812

        doses, _ = self._asked()
        without = dataset.drop(*self.treatments())  # no answers at the rows' own doses
        scored = self.copy({self.getParam("curveCol"): "curve"})._scored(without)
        means = [F.mean(column(ANSWER)["curve"][place]) for place in range(len(doses))]
        return np.array(scored.agg(*means).first(), np.float64)

    def _transform(self, dataset: Any) -> Any:
        scored = self._scored(dataset)
        has_dose = set(self.treatments()) <= set(dataset.columns)
        wanted = {
            "prediction": self.value("predictionCol") if has_dose else "",
            "curve": self.value("curveCol"),
            "effect": self.value("effectCol"),
        }
        taken = [name for name in wanted.values() if name and name in dataset.columns]
        if taken:
            raise ValueError(
                "The 'predictionCol', 'curveCol' and 'effectCol' parameters must name new columns. "
                f"Got {taken[0]!r} instead, which the data frame has."
            )
        added = [column(ANSWER)[kind].alias(name) for kind, name in wanted.items() if name]
        kept = [column(name) for name in dataset.columns]
        return scored.select(*kept, *added)

    def _scored(self, dataset: Any) -> Any:
        """The data frame with a column of all answers."""
        from pyspark.sql import functions as F  # noqa: N812

        features, treatment = self.checked_features(), self.treatments()
        check_features(dataset, features, served(self._fitted).categories)
        own = F.lit(None).cast("double")
        if set(treatment) <= set(dataset.columns):
            self._check_components(treatment)
            for name in treatment:
                check_numeric(dataset, treatment_parameter(treatment), name)
            own = doses_column(treatment)
        doses, baseline = self._asked()
        named = features if isinstance(features, str) else ", ".join(features)
        n_features = int(served(self._fitted).n_features)
        places = text_places(dataset, features)
        score = answers(self._broadcast(dataset), doses, baseline, named, n_features, places)
        rows = features_array(dataset, features), texts_array(dataset, features)
        with without_pandas_warning():
            answer = F.arrow_udf(score, STRUCT)(*rows, own)
        return dataset.withColumn(ANSWER, answer)

    def _check_components(self, treatment: tuple[str, ...]) -> None:
        width = self._fitted.support.n_components
        if len(treatment) != width:
            raise ValueError(
                f"The {treatment_parameter(treatment)!r} parameter must name a column for each of "
                f"the forest's {width} component(s) of a dose. Got {list(treatment)} instead."
            )

    def _asked(self) -> tuple[DoseArray, DoseArray]:
        """Doses to answer for, and the baseline as the only one of an array."""
        forest = self._fitted
        doses, baseline = self.value("doses"), self.value("baseline")
        width = forest.support.n_components
        asked = dose_table(forest.doses if doses is None else doses, 1, n_components=width)[0]
        start = one_dose(forest.baseline if baseline is None else baseline, "baseline", width)
        forest.check_asked(doses=asked, baseline=start)
        return asked.values, np.atleast_1d(start)

    def _broadcast(self, dataset: Any) -> Any:
        """The forest on the executors, sent once: data frames are made when they are asked for."""
        context = dataset.sparkSession.sparkContext
        if self._sent is None or self._sent[0] is not context:
            self._sent = context, context.broadcast(_single_threaded(self._fitted))
        return self._sent[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sent": None}


def _single_threaded(forest: Any) -> Any:
    """The forest as tasks use it: their cores are shared out by Spark."""
    from dataclasses import replace

    return replace(forest, n_jobs=1) if isinstance(forest, EffectForest) else forest


# Pipelines that 0.1 saved name the class that reads them.
GeneralizedCausalForestModel = SparkCausalForestModel
