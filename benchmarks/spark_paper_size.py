"""A fit of the paper's size on this machine, from Parquet to a saved model that scores.

    python benchmarks/spark_paper_size.py --rows 10698884

Six discount levels, ten covariates; rows are made by Spark and written to Parquet first. Seconds
and processor seconds of each stage, memory and shuffled bytes go to benchmarks/results.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from spark_cluster import cluster, peak_memory_mb, processor_seconds, shuffled_mb

LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
N_FEATURES = 10
RESULTS = Path(__file__).parent / "results" / "spark_paper_size.md"


def write_rows(session: Any, n_rows: int, n_partitions: int, path: str) -> None:
    """Orders: bookings finish more often at a discount, most where x0 is high; x1 confounds."""
    from pyspark.sql import functions as F  # noqa: N812

    names = [f"x{place}" for place in range(N_FEATURES)]
    frame = session.range(0, n_rows, 1, n_partitions)
    frame = frame.select("id", *(F.randn(seed).alias(name) for seed, name in enumerate(names)))
    place = F.floor(6 * F.least(F.lit(0.999), F.rand(101) * 0.8 + 0.2 / (1 + F.exp(-F.col("x1")))))
    frame = frame.withColumn("discount", F.round(place * 0.1, 1))
    effect = (0.4 + 0.4 * (F.col("x0") > 0).cast("double")) * F.col("discount")
    chance = F.least(F.lit(0.95), 0.3 + effect + 0.05 * F.tanh(F.col("x1")))
    frame = frame.withColumn("finished", (F.rand(102) < chance).cast("double"))
    frame.write.mode("overwrite").parquet(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_698_884)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--nuisance-trees", type=int, default=40)
    parser.add_argument("--partitions", type=int, default=32)
    parser.add_argument("--memory", type=int, default=4096, help="MB of an executor's JVM")
    options = parser.parse_args()
    from doseforest.spark import GeneralizedCausalForest, GeneralizedCausalForestModel

    stages: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, cluster(2, options.memory) as session:

        def stage(name: str, work: Any) -> Any:
            before, start, sent = processor_seconds(), time.perf_counter(), shuffled_mb(session)
            result = work()
            stages[name] = {
                "seconds": time.perf_counter() - start,
                "processor seconds": processor_seconds() - before,
                "shuffled, MB": shuffled_mb(session) - sent,
                **{f"{who}, MB": peak for who, peak in peak_memory_mb().items()},
            }
            print(name, stages[name], flush=True)
            return result

        path = f"file://{folder}/orders"
        stage(
            "rows to Parquet", lambda: write_rows(session, options.rows, options.partitions, path)
        )
        train = session.read.parquet(path)
        forest = GeneralizedCausalForest(
            featureCols=[f"x{place}" for place in range(N_FEATURES)],
            treatmentCol="discount",
            labelCol="finished",
            rowIdCol="id",
            nTrees=options.trees,
            nuisanceTrees=options.nuisance_trees,
            doses=list(LEVELS[1:]),
            baseline=0.0,
            progress=True,
        )
        model = stage("fit", lambda: forest.fit(train))
        saved = f"file://{folder}/model"
        stage("save", lambda: model.write().save(saved))
        again = stage("load", lambda: GeneralizedCausalForestModel.load(saved))
        average = stage("score all rows", lambda: again.averageDoseResponse(train))
        local = again.toLocal()
        zero, half = [[0.0] * N_FEATURES], [[1.0] + [0.0] * (N_FEATURES - 1)]
        effects = {
            "x0 = 0 (true 0.20, at the jump)": float(local.effect(zero, 0.5, 0.0)[0]),
            "x0 = 1 (true 0.40)": float(local.effect(half, 0.5, 0.0)[0]),
        }
    write_report(stages, options, model.summary, effects, average.tolist())


def write_report(
    stages: dict[str, dict[str, float]],
    options: argparse.Namespace,
    summary: dict[str, Any],
    effects: dict[str, float],
    average: list[float],
) -> None:
    columns = list(next(iter(stages.values())))
    lines = [
        "# A fit of the paper's size",
        "",
        f"{options.rows:,} rows of six discount levels and {N_FEATURES} covariates, two executors "
        f"of one core, {options.trees} trees a round, {options.nuisance_trees} for each nuisance. "
        "`make bench-spark-paper`.",
        "",
        "| | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for name, row in stages.items():
        lines.append(f"| {name} | " + " | ".join(f"{row[own]:,.0f}" for own in columns) + " |")
    told = ", ".join(f"{name}: {value:.3f}" for name, value in effects.items())
    lines += [
        "",
        f"Leaves of {summary['leaf_sizes']}; members of the outcome model "
        f"{summary['outcome_weights']}; growth {summary['growth']}.",
        "",
        f"Effect of a discount of 0.5: {told}. Average curve at 0.1 to 0.5: "
        f"{[round(value, 4) for value in average]}.",
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
