"""The commented configuration that `doseforest pipeline init` writes."""

from __future__ import annotations

TEMPLATE = """\
# A pipeline of doseforest: docs/pipeline.md tells of every key. Run it with
#   doseforest pipeline run {name}              (--dry-run shows what would run)
# Paths are relative to this file. Keys with a # before them show their defaults.

[pipeline]
workspace = "out/pipeline"     # artifacts, manifest and log
# engine = "local"             # or "spark"
# seed = 0
# threads = 4                  # by default all cores; never changes results

[collect]
source = "marketplace"         # "parquet", "csv", "sql", or this simulated experiment
rows = 20000                   # of the marketplace; of other sources the first ones
# path = "views.parquet"       # of "parquet" and "csv"
# url = "sqlite:///views.db"   # of "sql", with table = "views"
# regime = "mixed"             # of the marketplace: "linear", "mixed", "nonlinear"
# options = 1                  # 2 has a second ride with a discount of its own
# holdout = 0.4                # share of the rows that choose between models

[columns]
outcome = "requested"
treatment = ["discount"]       # two columns for two discounts
features = [
  "distance_km", "hour", "weekday", "rain_mm", "fare", "recent_views", "idle_drivers",
  "eta_minutes", "origin_business", "origin_nightlife", "origin_income",
  "destination_business", "destination_nightlife", "destination_airport",
  "rider_trips", "days_since_trip",
]                              # by default all columns without another role
propensity = "propensity"      # chance of each row's own dose; leave out where it is not known
# group = "rider"              # rows of a group stay together in splits and folds

[train]
models = ["boosting", "linear", "forest"]  # also "xgboost", "random_forest"

[train.forest]                 # parameters of GeneralizedCausalForest
# n_trees = 400

[select]
# metric = "qini"              # or "budgeted_qini", "policy_value", "r_risk"
# level = 0.05                 # how much chance a false winner may have
# tie = "best"                 # who decides where the data cannot tell: the best, or a name

[optimise]
price = "fare"                 # a dose is a share of it, paid where the outcome happens
spent = "cost"                 # column of what was paid, if there is one
budget_like = 0.12             # as much as this dose for everybody; or budget = 0.6 per unit
cell = "zone_hour"             # cells that have a supply, with supply = its column
supply = "zone_drivers"
# fill = 1.0                   # demand over supply at most
# units = "tomorrow.parquet"   # to plan for; by default the held-out rows
compare = ["linear", "boosting"]  # plan with these too, for the test

[publish]
# target = "policies/discounts.dose"  # a copy of the policy for the service

[test]
kind = "marketplace"           # "results" reads a table of a finished experiment, or "none"
# days = 7
"""


def template(name: str) -> str:
    """The configuration, with the name of its file in the first lines.

    >>> print(template("config.toml").splitlines()[1])
    #   doseforest pipeline run config.toml              (--dry-run shows what would run)
    """
    return TEMPLATE.replace("{name}", name)
