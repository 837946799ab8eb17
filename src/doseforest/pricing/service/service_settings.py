"""What an operator chooses, in one place; worker processes get it through the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from doseforest.pricing.service.served_doses import Dose, checked_dose

ENVIRONMENT = "DOSEFOREST_SERVICE"  # holds the settings of worker processes


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the service.

    Parameters
    ----------
    database : str
        URL of the database.
    policies : str
        Folder with the files of policies.
    fallback_dose : float or dict, optional
        Dose where there is no policy, or where it fails: a number, or one for each component by
        name. Without it such requests get a 503.
    rate : float, default=1000.0
        Requests per second that each key may make, over all workers; 0 for no limit.
    max_units : int, default=1000
        Units of one request.
    max_body : int, default=4,000,000
        Bytes of one request, but for the file of a policy.
    max_policy : int, default=500,000,000
        Bytes of a policy's file.
    refresh : float, default=1.0
        Seconds between looks for new policies, experiments and keys.
    drain : float, default=2.0
        Seconds from the signal to stop until no new connections are taken.
    workers : int, default=1
        Processes that share the rate.
    open_metrics : bool, default=False
        Whether metrics can be read without a key.

    Examples
    --------
    >>> Settings("sqlite:///doses.sqlite", "policies", rate=-1)
    Traceback (most recent call last):
    ...
    ValueError: The 'rate' parameter must be a finite number of at least 0. Got -1 instead.
    """

    database: str
    policies: str
    fallback_dose: Dose | None = None
    rate: float = 1000.0
    max_units: int = 1000
    max_body: int = 4_000_000
    max_policy: int = 500_000_000
    refresh: float = 1.0
    drain: float = 2.0
    workers: int = 1
    open_metrics: bool = False

    def __post_init__(self) -> None:
        for name, (rule, fits) in RULES.items():
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int | float) or not fits(given):
                raise ValueError(f"The {name!r} parameter must be {rule}. Got {given!r} instead.")
        if self.fallback_dose is not None:
            checked_dose(self.fallback_dose, "fallback_dose")

    def to_environment(self) -> None:
        """Leave the settings to the processes that this one starts."""
        os.environ[ENVIRONMENT] = json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> Settings:
        """The settings that the process above left."""
        if ENVIRONMENT not in os.environ:
            raise RuntimeError("The service is started by: doseforest serve")
        return cls(**json.loads(os.environ[ENVIRONMENT]))


RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "rate": ("a finite number of at least 0", lambda value: isfinite(value) and value >= 0),
    "max_units": ("a whole number from 1 to 100000", lambda value: value in range(1, 100_001)),
    "max_body": (
        "a whole number of at least 1000",
        lambda value: value >= 1000 and value == int(value),
    ),
    "max_policy": (
        "a whole number of at least 1000",
        lambda value: value >= 1000 and value == int(value),
    ),
    "refresh": ("a number from 0.01 to 3600", lambda value: 0.01 <= value <= 3600),
    "drain": ("a number from 0 to 3600", lambda value: 0 <= value <= 3600),
    "workers": ("a whole number from 1 to 1000", lambda value: value in range(1, 1001)),
}
