"""What requests and answers about decisions look like."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from doseforest.pricing.service.served_doses import Dose

# Text without control characters: databases and logs are not the place for them.
TEXT = r"^[^\x00-\x1f\x7f]+$"
UnitId = Annotated[str, Field(min_length=1, max_length=100, pattern=TEXT)]
Label = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
FeatureName = Annotated[str, Field(min_length=1, max_length=100, pattern=TEXT)]
MOST_FEATURES = 1000
MOST_UNITS = 100_000  # whatever the settings; they may allow fewer


class Strict(BaseModel):
    """Nothing but what is declared, of the types declared."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Unit(Strict):
    """Somebody or something to decide on."""

    unit: UnitId = Field(description="Your id of it. A keyed hash of it is stored, not the id.")
    cell: UnitId | None = Field(
        None,
        description="What experiments assign to an arm as a whole, such as a zone and hour; by "
        "default the unit itself.",
    )
    features: dict[FeatureName, bool | Number | Label | None] = Field(
        max_length=MOST_FEATURES,
        description="Features by name, and the columns that the policy's rules need. null says "
        "that it is missing; others than the policy needs are stored and not used.",
        examples=[{"x0": 0.4, "x1": -1.2}],
    )


class Batch(Strict):
    """Several units."""

    units: list[Unit] = Field(min_length=1, max_length=MOST_UNITS)


class DecisionAnswer(BaseModel):
    """A dose, and why."""

    decision_id: str = Field(description="Report outcomes with it.")
    unit: str
    dose: Dose = Field(
        description="A number; where doses have several components, one for each by its name.",
        examples=[0.2, {"express": 0.1, "premium": 0.0}],
    )
    propensity: float = Field(
        description="Probability that this unit got this dose, over arms and draws."
    )
    reason: str = Field(description="Why it is this dose.", examples=["best"])
    fallback: bool = Field(description="Whether nobody could decide, and it is a safe dose.")
    policy_version: int | None
    experiment: str | None
    arm: str | None
    effect: float | None = Field(description="Predicted, against the policy's baseline dose.")
    low: float | None = Field(description="Of the effect's 95 % interval, where it is known.")
    high: float | None
    value: float | None = Field(description="Expected, by the policy's rules.")
    cost: float | None
    shadow_price: float | None = Field(description="What a unit of cost had to bring.")
    supported: bool | None = Field(description="Whether such units had such doses in training.")


class BatchAnswer(BaseModel):
    """Decisions in the order of the units."""

    decisions: list[DecisionAnswer]


class UnitCurve(BaseModel):
    """Predicted responses of one unit."""

    unit: str
    response: list[float] | None = Field(description="At each dose; null where features lack.")


class CurvesAnswer(BaseModel):
    """Dose-response curves."""

    policy_version: int
    doses: list[Dose]
    curves: list[UnitCurve]
