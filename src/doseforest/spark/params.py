"""Parameters of the Spark forest, as a table: type, default, rule and what they are for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters

from doseforest.doses.bases.dose_basis import BASES
from doseforest.doses.dose_values import MAX_COMPONENTS
from doseforest.spark.cluster_outcome import OUTCOME_MODELS
from doseforest.spark.engine import MODES
from doseforest.spark.local_only import local_value, refuse_parameter

CORRECTIONS = ("orthogonal", "none")
JOINT_BASES = ("tensor", "arms")  # of several components


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter."""

    doc: str
    convert: Callable[[Any], Any]
    default: Any = None  # None: not set
    rule: str = ""
    holds: Callable[[Any], bool] = lambda value: True


def _count(doc: str, default: int | None, low: int = 1, high: int = 2**31 - 1) -> Parameter:
    rule = f"an int from {low} to {high}"
    return Parameter(doc, TypeConverters.toInt, default, rule, lambda value: low <= value <= high)


def _share(doc: str, default: float) -> Parameter:
    return Parameter(
        doc, TypeConverters.toFloat, default, "a float in (0, 1)", lambda value: 0 < value < 1
    )


def _choice(doc: str, default: str, choices: tuple[str, ...]) -> Parameter:
    rule = f"one of {', '.join(map(repr, choices))}"
    return Parameter(doc, TypeConverters.toString, default, rule, lambda value: value in choices)


def _dose(given: Any) -> Any:
    """A number, or a list of components."""
    if isinstance(given, str) or not hasattr(given, "__len__"):
        return TypeConverters.toFloat(given)
    return TypeConverters.toListFloat(given)


def _name(doc: str, default: str | None = None) -> Parameter:
    return Parameter(doc, TypeConverters.toString, default)


INPUTS: dict[str, Parameter] = {
    "featuresCol": _name("column of feature vectors or arrays", "features"),
    "featureCols": Parameter(
        "columns that are the features, in place of featuresCol; text is categorical",
        TypeConverters.toListString,
    ),
    "treatmentCol": _name("column of the observed doses", "treatment"),
    "treatmentCols": Parameter(
        "columns that are the components of the dose, in place of treatmentCol",
        TypeConverters.toListString,
        None,
        f"the names of 2 to {MAX_COMPONENTS} columns, each its own",
        lambda value: 2 <= len(value) <= MAX_COMPONENTS and len(set(value)) == len(value),
    ),
}
ANSWERS: dict[str, Parameter] = {
    "doses": Parameter(
        "doses to answer for, lists of components with treatmentCols; by default a grid over the "
        "observed ones",
        lambda given: [_dose(each) for each in TypeConverters.toList(given)],
        None,
        "one dose or more",
        lambda value: len(value) > 0,
    ),
    "baseline": Parameter(
        "dose that effects are measured against; by default 0, or the lowest with enough rows",
        _dose,
    ),
    "predictionCol": _name(
        "new column: expected outcome at the row's observed dose, where treatmentCol is there; "
        "'' for none",
        "prediction",
    ),
    "curveCol": _name("new column: expected outcomes at the doses; '' for none", "curve"),
    "effectCol": _name("new column: effects of the doses against baseline; '' for none", "effect"),
}
TRAINING: dict[str, Parameter] = {
    "labelCol": _name("column of the outcomes", "label"),
    "categoricalCols": Parameter(
        "features of whole numbers that are codes of categories; text and what a StringIndexer "
        "made are categorical by themselves",
        TypeConverters.toListString,
    ),
    "weightCol": _name("column of row weights; a row of weight 0 is as good as absent"),
    "groupCol": _name("column of groups: rows of a group share a fold and enter a tree together"),
    "rowIdCol": _name(
        "column of ids that rows are drawn by; with it a fit does not depend on partitions"
    ),
    "nTrees": _count("trees of the correction's forests in a round, over all leaf sizes", 400),
    "nuisanceTrees": _count("trees of each nuisance's forests, over all folds", 100),
    "leafSizes": Parameter(
        "smallest leaves of the correction's forests; by default 5, 15, 50 and 150, and more "
        "where trees would have over 4,000 leaves",
        TypeConverters.toListInt,
        None,
        "one int or more, each at least 1",
        lambda value: len(value) > 0 and min(value) >= 1,
    ),
    "nRounds": _count("rounds of correction", 2, 1, 100),
    "nFolds": _count("folds of cross-fitting", 4, 3, 100),
    "outcomeModel": _choice(
        "the spline core stacked with forests, or the core alone; outcomeMembers join either, or "
        "are all there is with 'members'",
        "stack",
        OUTCOME_MODELS,
    ),
    "outcomeMembers": Parameter(
        "regressors of Spark ML or xgboost.spark for the outcome given features and dose: "
        "DecisionTreeRegressor, RandomForestRegressor, GBTRegressor, SparkXGBRegressor",
        TypeConverters.identity,
    ),
    "correction": _choice(
        "what corrects the outcome model: honest forests of orthogonal scores, or nothing",
        "orthogonal",
        CORRECTIONS,
    ),
    "basis": _choice("functions of the dose", "auto", ("auto", *BASES)),
    "sampleFraction": _share("share of the rows that a tree of the correction sees", 0.7),
    "honestyFraction": _share("share of these that grow the tree; the rest fill its leaves", 0.5),
    "maxBins": _count("bins of a feature", 64, 2, 255),
    "overlap": Parameter(
        "measure who could have had which dose, and warn of doses that hardly anyone could have "
        "had; needs the density of the dose",
        TypeConverters.toBoolean,
        True,
    ),
    "growth": _choice(
        "how trees are grown: in tasks where their rows fit one, above that in rounds of summed "
        "histograms; or all in rounds, or all in tasks. The trees are the same",
        "hybrid",
        MODES,
    ),
    "taskMemoryMB": _count("megabytes of rows that one task may hold to grow trees", 256),
    "numPartitions": _count("partitions of the rows; by default those of the data frame", None),
    "seed": Parameter(
        "of everything that is drawn",
        TypeConverters.toInt,
        0,
        "an int of 0 or more",
        lambda value: value >= 0,
    ),
    "progress": Parameter(
        "show a progress bar; by default on a terminal", TypeConverters.toBoolean
    ),
}


class TableOfParams(Params):  # type: ignore[misc]
    """Parameters of a table, with a setter and a getter each."""

    TABLE: dict[str, Parameter] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name, each in cls.TABLE.items():
            setattr(cls, name, Param(Params._dummy(), name, each.doc, each.convert))
            capital = name[0].upper() + name[1:]
            setattr(cls, f"set{capital}", _setter(name, each.doc))
            setattr(cls, f"get{capital}", _getter(name, each.doc))

    def _take(self, given: dict[str, Any]) -> None:
        """Set the defaults, then what was given; None is as good as not given."""
        self._setDefault(
            **{name: each.default for name, each in self.TABLE.items() if each.default is not None}
        )
        for name, value in given.items():
            if name not in self.TABLE:
                refuse_parameter(name, value)
                raise TypeError(
                    f"{type(self).__name__} must be given parameters that it has. Got {name!r} "
                    f"instead of one of {', '.join(self.TABLE)}."
                )
        for name, value in given.items():
            self._give(name, value)

    def _give(self, name: str, value: Any) -> Any:
        """Set a parameter; None takes it back to its default, or to nothing."""
        if value is None:
            self.clear(self.getParam(name))
            return self
        return self._set(**{name: value})

    def setParams(self, **given: Any) -> Any:  # noqa: N802 (Spark's own convention)
        """Set several parameters by name.

        Parameters
        ----------
        **given
            Parameters by name; None takes one back to its default.

        Returns
        -------
        object
            The same estimator or model.
        """
        self._take(given)
        return self

    def value(self, name: str) -> Any:
        """Value of a parameter, checked.

        Parameters
        ----------
        name : str
            Name of the parameter.

        Returns
        -------
        object
            The value; None where it is neither set nor has a default.

        Raises
        ------
        ValueError
            Where the value breaks the parameter's rule.
        """
        param = self.getParam(name)
        if not self.isDefined(param):
            return None
        result = self.getOrDefault(param)
        parameter = self.TABLE[name]
        if not parameter.holds(result):
            raise ValueError(
                f"The {name!r} parameter of {type(self).__name__} must be {parameter.rule}. "
                f"Got {result!r} instead{local_value(name, result)}."
            )
        return result

    def treatments(self) -> tuple[str, ...]:
        """The column of the dose, or those of its components.

        Returns
        -------
        tuple of str
            Their names.
        """
        listed = self.value("treatmentCols")
        return (str(self.value("treatmentCol")),) if listed is None else tuple(listed)

    def checked_features(self) -> str | tuple[str, ...]:
        """The column of features, or the columns of one each.

        Returns
        -------
        str or tuple of str
            Their names.
        """
        listed = self.value("featureCols")
        return str(self.value("featuresCol")) if listed is None else tuple(listed)


def _setter(name: str, doc: str) -> Callable[[Any, Any], Any]:
    def set_value(self: Any, value: Any) -> Any:
        return self._give(name, value)

    set_value.__doc__ = f"""Set {name}.

        Parameters
        ----------
        value : object
            {doc[0].upper()}{doc[1:]}. None takes it back to its default.

        Returns
        -------
        object
            The same estimator or model.
        """
    return set_value


def _getter(name: str, doc: str) -> Callable[[Any], Any]:
    def get_value(self: Any) -> Any:
        return self.getOrDefault(name)

    get_value.__doc__ = f"""Value of {name}.

        Returns
        -------
        object
            {doc[0].upper()}{doc[1:]}.
        """
    return get_value
