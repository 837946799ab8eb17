"""The generalized causal forest as an estimator of Spark ML."""

from __future__ import annotations

from typing import Any

from pyspark.ml import Estimator
from pyspark.ml.util import MLReadable, MLWritable

from doseforest.base.progress import ProgressBar
from doseforest.doses.curve_effects import dose_table, one_dose
from doseforest.spark.cluster_fit import FitSettings, fit_units, n_steps
from doseforest.spark.cluster_units import Units
from doseforest.spark.engine import GrowthLimits
from doseforest.spark.estimator_file import EstimatorReader, EstimatorWriter
from doseforest.spark.frame_columns import FrameColumns, check_columns, feature_names
from doseforest.spark.frame_input import (
    check_groups,
    count_ids,
    lying_together,
    prepared_frame,
    summarise_frame,
    unit_blocks,
    with_labels,
)
from doseforest.spark.jobs import Kept
from doseforest.spark.members import check_members
from doseforest.spark.model import SparkCausalForestModel
from doseforest.spark.params import ANSWERS, INPUTS, JOINT_BASES, TRAINING, TableOfParams
from doseforest.spark.requirements import check_workers


class SparkCausalForest(
    TableOfParams,
    Estimator,  # type: ignore[misc]
    MLWritable,  # type: ignore[misc]
    MLReadable,  # type: ignore[misc]
):
    """The dose-response curve of every unit, learned on a cluster.

    The outcome model is the spline core of `doseforest.GeneralizedCausalForest` stacked with
    forests; what corrects it are the same orthogonal forests. Trees are those that the local engine
    grows from the same rows and seed, bit by bit. Features are numbers or text; null and NaN are
    missing values.

    Parameters
    ----------
    **params
        By keyword here, by setters such as ``setTreatmentCol``, or by ``setParams``;
        ``explainParams()`` lists them with their defaults.

        Columns: ``featuresCol`` (vectors or arrays) or ``featureCols`` (a column for each feature),
        ``treatmentCol`` or ``treatmentCols`` (components of the dose), ``labelCol`` (the outcomes),
        ``categoricalCols``, ``weightCol``, ``groupCol`` (rows that share a fold), and ``rowIdCol``,
        by whose ids rows are drawn: set it, and a fit does not depend on partitions.

        Answers: ``doses`` and ``baseline``; ``predictionCol``, ``curveCol`` and ``effectCol`` name
        the new columns, '' for none. Arrays of curves are what costs most to write.

        ``nTrees`` (400), trees of the correction's forests in a round, and ``nuisanceTrees`` (100):
        raise them where two seeds give curves that differ by more than matters; time and memory of
        the driver grow in proportion. ``leafSizes``: larger leaves are steadier and cheaper,
        smaller ones finer. ``nRounds`` (2) of correction, ``nFolds`` (4) of cross-fitting: time is
        proportional to each.

        ``outcomeModel`` and ``outcomeMembers`` say what the outcome model is made of; members of
        Spark ML cost a fit for every fold. ``correction="none"`` leaves the outcome model as it is,
        which is fastest and biased where the model is. ``basis`` has the functions of the dose.

        ``sampleFraction`` (0.7) and ``honestyFraction`` (0.5): rows that a tree sees, and the share
        of these that grow it. ``maxBins`` (64): raise it where the place of a split matters;
        histograms grow in proportion. ``overlap=False`` saves the density of the dose, and the
        report.

        ``growth`` ("hybrid"), ``taskMemoryMB`` (256) and ``numPartitions`` change where trees grow
        and how long it takes, never the trees. ``seed`` is that of all draws, ``progress`` shows a
        bar.

    Examples
    --------
    >>> from doseforest.spark import SparkCausalForest  # doctest: +SKIP
    >>> forest = SparkCausalForest(
    ...     featureCols=["age", "orders"], treatmentCol="discount", labelCol="finished",
    ...     rowIdCol="user", doses=[0.05, 0.1],
    ... )  # doctest: +SKIP
    >>> model = forest.fit(train)  # doctest: +SKIP
    >>> model.transform(test).select("effect").show()  # doctest: +SKIP
    """

    TABLE = {**INPUTS, **TRAINING, **ANSWERS}

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._take(params)

    def write(self) -> EstimatorWriter:
        """Writer to any path that Spark can write to.

        Returns
        -------
        EstimatorWriter
            Its ``save`` writes the parameters.
        """
        return EstimatorWriter(self)

    @classmethod
    def read(cls) -> EstimatorReader:
        """Reader of what `write` wrote.

        Returns
        -------
        EstimatorReader
            Its ``load`` reads the parameters.
        """
        return EstimatorReader(cls)

    def _fit(self, dataset: Any) -> SparkCausalForestModel:
        settings, columns = self._settings(), self._columns()
        check_columns(dataset, columns)
        context = dataset.sparkSession.sparkContext
        written = _check_ids(context, columns)
        check_workers(context)
        names = feature_names(dataset, columns.features)
        frame = prepared_frame(dataset, columns, self.value("numPartitions"))
        summary = summarise_frame(frame, columns, names)
        if columns.group is not None or columns.row_id is not None:
            n_ids = count_ids(frame)
            check_groups(n_ids, columns, settings.n_folds)
            if columns.group is None and n_ids < summary.n_rows:
                frame = lying_together(frame, self.value("numPartitions"))
        summary = with_labels(dataset, frame, columns, summary)
        with (
            Kept() as kept,
            ProgressBar(n_steps(settings), "fitting", "step", self.value("progress")) as bar,
        ):
            blocks = unit_blocks(frame, summary, settings.n_folds, settings.seed)
            if written:
                blocks.checkpoint()
            units = Units(
                blocks=kept.keep(blocks),
                kept=kept,
                n_rows=summary.n_rows,
                n_features=summary.n_features,
                n_folds=settings.n_folds,
                seed=settings.seed,
                weighted=summary.heaviest is not None,
            )
            forest, report = fit_units(units, summary, settings, bar.advance)
        model = SparkCausalForestModel(forest, report.to_json())
        return model.take_over(self)

    def _columns(self) -> FrameColumns:
        return FrameColumns(
            features=self.checked_features(),
            treatment=self.treatments(),
            label=self.value("labelCol"),
            weight=self.value("weightCol"),
            group=self.value("groupCol"),
            row_id=self.value("rowIdCol"),
            categorical=tuple(self.value("categoricalCols") or ()),
        )

    def _settings(self) -> FitSettings:
        """Check every parameter."""
        values = {name: self.value(name) for name in self.TABLE}
        sizes, doses = values["leafSizes"], values["doses"]
        members = check_members(values["outcomeMembers"])
        if values["outcomeModel"] == "members" and not members:
            raise ValueError(
                "The 'outcomeMembers' parameter must hold a regressor with outcomeModel='members'. "
                "Got none instead."
            )
        width = len(self.treatments())
        if doses is not None:
            dose_table(doses, 1, n_components=width)
        if values["baseline"] is not None:
            one_dose(values["baseline"], "baseline", width)
        joint = width > 1
        if joint and members:
            raise ValueError(
                "The 'outcomeMembers' parameter must be empty with 'treatmentCols': their trees "
                f"are read for one column of doses. Got {len(members)} instead."
            )
        if not joint and values["basis"] in JOINT_BASES:
            raise ValueError(
                "The 'basis' parameter must be for one component with 'treatmentCol'. "
                f"Got {values['basis']!r} instead; 'treatmentCols' names several."
            )
        return FitSettings(
            n_trees=values["nTrees"],
            nuisance_trees=values["nuisanceTrees"],
            leaf_sizes=None if sizes is None else tuple(sizes),
            n_rounds=values["nRounds"],
            n_folds=values["nFolds"],
            outcome_model=values["outcomeModel"],
            outcome_members=members,
            correction=values["correction"],
            basis=values["basis"],
            sample_fraction=values["sampleFraction"],
            honesty_fraction=values["honestyFraction"],
            max_bins=values["maxBins"],
            overlap=values["overlap"] and not joint,
            doses=None if doses is None else tuple(doses),
            baseline=values["baseline"],
            mode=values["growth"],
            limits=GrowthLimits(task_bytes=values["taskMemoryMB"] * 2**20),
            seed=values["seed"],
        )


def _check_ids(context: Any, columns: FrameColumns) -> bool:
    """Whether rows must be written before growth, for nothing in them tells them apart.

    Numbers that are given to rows as they come may change when a lost partition is read again.
    """
    if columns.row_id is not None or columns.group is not None:
        return False
    if context.getCheckpointDir() is not None:
        return True
    if not context.master.startswith("local") or context.master.startswith("local-cluster"):
        raise ValueError(
            "The 'rowIdCol' parameter must name a column of ids on a cluster: rows that are read "
            "again after a failure must be drawn as before. Got none instead; or call "
            "sparkContext.setCheckpointDir(...), and rows are numbered and written there once."
        )
    return False


# Pipelines that 0.1 saved name the class that reads them.
GeneralizedCausalForest = SparkCausalForest
