"""The configuration of a pipeline: one frozen section for each stage, checked as a whole."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from doseforest.pricing.pipeline import config_rules
from doseforest.pricing.pipeline.config_checks import joint_problems
from doseforest.pricing.pipeline.config_rules import setting
from doseforest.pricing.pipeline.model_names import MODEL_NAMES
from doseforest.pricing.pipeline.problems import ConfigError, nearest

REQUIRED = ("source", "outcome", "treatment", "models")  # keys without a default


@dataclass(frozen=True, slots=True)
class RunSection:
    """``[pipeline]``: what all stages share."""

    workspace: str = setting(
        config_rules.text(), "out/pipeline"
    )  # folder of artifacts and manifest
    engine: str = setting(config_rules.one_of("local", "spark"), "local")
    seed: int = setting(config_rules.whole(0), 0)
    threads: int | None = setting(
        config_rules.whole(1)
    )  # by default all cores; never changes results


@dataclass(frozen=True, slots=True)
class CollectSection:
    """``[collect]``: where rows come from, and how many are held out."""

    source: str = setting(config_rules.one_of("parquet", "csv", "sql", "marketplace"), "")
    path: str | None = setting(config_rules.text())  # of Parquet and CSV
    url: str | None = setting(
        config_rules.text()
    )  # of a database: sqlite:///file.db, postgresql://…
    table: str | None = setting(config_rules.text())
    version: str = setting(config_rules.text(), "1")  # change it to read a database again
    regime: str = setting(
        config_rules.one_of("linear", "mixed", "nonlinear"), "mixed"
    )  # marketplace
    options: int = setting(config_rules.whole(1, 2), 1)
    assignment: str = setting(
        config_rules.one_of("levels", "continuous", "history", "history_continuous"), "levels"
    )
    rows: int | None = setting(
        config_rules.whole(100)
    )  # of the marketplace; of others, the first ones
    holdout: float = setting(config_rules.number(0, 1), 0.4)  # share of the rows that choose models


@dataclass(frozen=True, slots=True)
class ColumnsSection:
    """``[columns]``: what the columns of the rows mean."""

    outcome: str = setting(config_rules.text(), "")
    treatment: tuple[str, ...] = setting(config_rules.names(1), ())
    features: tuple[str, ...] | None = setting(config_rules.names(1))  # by default all others
    exclude: tuple[str, ...] = setting(config_rules.names(), ())  # never features
    propensity: str | None = setting(config_rules.text())  # chance of the row's own dose
    group: str | None = setting(config_rules.text())  # rows of a group stay together


@dataclass(frozen=True, slots=True)
class TrainSection:
    """``[train]``: models by name, with parameters in ``[train.NAME]``."""

    models: tuple[str, ...] = setting(config_rules.names(1), ())
    parameters: dict[str, dict[str, Any]] = field(
        default_factory=dict, metadata={"rule": config_rules.tables()}
    )


@dataclass(frozen=True, slots=True)
class SelectSection:
    """``[select]``: how the model is chosen that decides."""

    metric: str = setting(
        config_rules.one_of("qini", "budgeted_qini", "policy_value", "r_risk"), "qini"
    )
    level: float = setting(config_rules.number(0, 1), 0.05)  # chance of a false winner
    doses: tuple[Any, ...] | None = setting(config_rules.doses())  # of Qini scores; by default all
    scores: str | None = setting(config_rules.one_of("randomised", "robust"))
    tie: str = setting(
        config_rules.text(), "best"
    )  # who is taken then: the best, or a model's name


@dataclass(frozen=True, slots=True)
class OptimiseSection:
    """``[optimise]``: which doses, for what value, within which budget and supply."""

    doses: tuple[Any, ...] | None = setting(config_rules.doses())  # by default the observed levels
    baseline: float | tuple[float, ...] | None = setting(config_rules.dose())  # 0
    value: float | str = setting(config_rules.number_or_name(), 1.0)  # of one unit of outcome
    price: float | str | None = setting(config_rules.number_or_name())  # that a dose is a share of
    spent: str | None = setting(config_rules.text())  # column of what was paid
    budget: float | None = setting(config_rules.number(above=0))  # per unit
    budget_like: float | tuple[float, ...] | None = setting(config_rules.dose())  # of all
    cell: str | None = setting(config_rules.text())  # column of cells that have a supply
    supply: str | None = setting(config_rules.text())  # column of each cell's supply
    fill: float = setting(config_rules.number(above=0), 1.0)  # demand over supply at most
    units: str | None = setting(
        config_rules.text()
    )  # file of units to plan for; else the held-out rows
    plan_units: int = setting(config_rules.whole(100), 30_000)  # most that are planned for
    compare: tuple[str, ...] = setting(
        config_rules.names(), ()
    )  # models that plan too, for the test


@dataclass(frozen=True, slots=True)
class PublishSection:
    """``[publish]``: where the policy goes that a service reads."""

    target: str | None = setting(config_rules.text())  # a copy outside of the workspace


@dataclass(frozen=True, slots=True)
class TrialSection:
    """``[test]``: an experiment with the policy, simulated or read from a table of results."""

    kind: str = setting(config_rules.one_of("none", "marketplace", "results"), "none")
    control: str | None = setting(config_rules.text())  # a compared model; by default the first
    days: int = setting(config_rules.whole(1, 300), 7)
    days_before: int = setting(config_rules.whole(1, 60), 7)
    cells: int | None = setting(config_rules.whole(10))  # of the marketplace; by default all
    salt: str = setting(config_rules.text(), "ab")
    path: str | None = setting(config_rules.text())  # of results
    arm: str = setting(config_rules.text(), "arm")
    unit: str | None = setting(config_rules.text())
    outcome: str | None = setting(config_rules.text())
    covariates: tuple[str, ...] = setting(config_rules.names(), ())
    cost: str | None = setting(config_rules.text())


SECTIONS: dict[str, type[Any]] = {
    "pipeline": RunSection,
    "collect": CollectSection,
    "columns": ColumnsSection,
    "train": TrainSection,
    "select": SelectSection,
    "optimise": OptimiseSection,
    "publish": PublishSection,
    "test": TrialSection,
}


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """The configuration of a pipeline, checked; a section for each table of the TOML file.

    Attributes
    ----------
    pipeline : RunSection
        Where artifacts go, the engine, the seed, threads.
    collect : CollectSection
        Where rows come from, and the share of them that choose models.
    columns : ColumnsSection
        Outcome, treatment, features, and the probabilities of the assignment.
    train : TrainSection
        Models and their parameters.
    select : SelectSection
        How models are compared.
    optimise : OptimiseSection
        Doses, value, cost and budget of the policy.
    publish : PublishSection
        Where the policy is copied to.
    test : TrialSection
        The test of the policy.
    folder : Path
        What paths are relative to.

    Examples
    --------
    >>> config = PipelineConfig.from_tables({
    ...     "collect": {"source": "marketplace", "rows": 1000},
    ...     "columns": {"outcome": "requested", "treatment": "discount"},
    ...     "train": {"models": ["forest"]},
    ...     "optimise": {"price": "fare", "budget": 0.5},
    ... })
    >>> config.columns.treatment, config.select.metric
    (('discount',), 'qini')
    """

    pipeline: RunSection
    collect: CollectSection
    columns: ColumnsSection
    train: TrainSection
    select: SelectSection
    optimise: OptimiseSection
    publish: PublishSection
    test: TrialSection
    folder: Path = field(default=Path(), compare=False)

    @classmethod
    def from_tables(
        cls, tables: Any, folder: Path | None = None, name: str = "The configuration"
    ) -> PipelineConfig:
        """Check tables of plain values, as TOML has them.

        Parameters
        ----------
        tables : mapping
            A table for each section.
        folder : Path, optional
            What paths are relative to; by default the working directory.
        name : str, default="The configuration"
            What errors call it, such as the file.

        Returns
        -------
        PipelineConfig
            The configuration.

        Raises
        ------
        ConfigError
            With all problems at once.
        """
        problems: list[str] = []
        result: dict[str, Any] = {}
        problems += [
            f"There is no section [{section}].{nearest(section, SECTIONS)}"
            for section in tables
            if section not in SECTIONS
        ]
        for section, kind in SECTIONS.items():
            result[section] = _section(section, kind, tables.get(section, {}), problems)
        if not problems:
            config = cls(**result, folder=folder or Path())
            problems += joint_problems(config)
        if problems:
            raise ConfigError(problems, name)
        return config

    @property
    def workspace(self) -> Path:
        """Folder of the artifacts."""
        return self.path(self.pipeline.workspace)

    def path(self, given: str) -> Path:
        """A path of the configuration, relative to the folder of its file.

        Parameters
        ----------
        given : str
            The path, as the file has it.

        Returns
        -------
        Path
            The path.
        """
        return self.folder / Path(given).expanduser()

    def plain(self, *sections: str) -> dict[str, Any]:
        """Sections as plain values, for digests and the manifest.

        Parameters
        ----------
        *sections : str
            Names of sections.

        Returns
        -------
        dict
            A table for each.
        """
        return {section: asdict(getattr(self, section)) for section in sections}


def read_config(path: str | Path) -> PipelineConfig:
    """Read and check a TOML file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    PipelineConfig
        The configuration; its paths are relative to the file.

    Raises
    ------
    ConfigError
        With all problems at once.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "rides.toml"
    >>> _ = file.write_text('''
    ... [collect]
    ... source = "marketplace"
    ... rows = 1000
    ... [columns]
    ... outcome = "requested"
    ... treatment = "discount"
    ... [train]
    ... models = ["forest"]
    ... [optimise]
    ... price = "fare"
    ... budget = 0.5
    ... ''')
    >>> read_config(file).train.models
    ('forest',)
    """
    file = Path(path)
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            [f"There is no such file. `doseforest pipeline init {path}` writes one."], str(path)
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError([f"This is not TOML: {error}."], str(path)) from error
    return PipelineConfig.from_tables(tables, file.resolve().parent, str(path))


def _section(section: str, kind: type[Any], table: Any, problems: list[str]) -> Any:
    """One section with clean values; problems are noted, not raised."""
    if not isinstance(table, dict):
        problems.append(f"[{section}] must be a table of settings. Got {table!r} instead.")
        return kind()
    known = {each.name: each.metadata["rule"] for each in fields(kind)}
    clean: dict[str, Any] = {}
    given = _with_parameters(table, problems) if section == "train" else table
    for key, value in given.items():
        if key not in known:
            problems.append(f"[{section}] has no key {key!r}.{nearest(key, known)}")
            continue
        try:
            clean[key] = known[key].clean(value)
        except ValueError:
            problems.append(f"[{section}] {key} must {known[key].text}. Got {value!r} instead.")
    missing = [key for key in known if key in REQUIRED and key not in given]
    problems += [
        f"[{section}] {key} must be given: {known[key].text.removeprefix('be ')}."
        for key in missing
        if section in ("collect", "columns", "train")
    ]
    return kind(**clean)


def _with_parameters(table: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    """``[train.NAME]`` tables under one key."""
    own = {key: value for key, value in table.items() if key not in MODEL_NAMES}
    parameters = {key: value for key, value in table.items() if key in MODEL_NAMES}
    if "parameters" in own:
        problems.append("[train] has no key 'parameters'. Write them under [train.NAME].")
        own.pop("parameters")
    return own | ({"parameters": parameters} if parameters else {})
