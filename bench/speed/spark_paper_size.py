"""A fit of the paper's size on this machine, from Parquet to a saved model that scores.

    python -m bench.speed.spark_paper_size --rows 10698884

Six discount levels, ten covariates; rows are made by Spark and written to Parquet first. Seconds
and processor seconds of each stage, memory and shuffled bytes go to ``spark_paper_size.md`` in
the folder ``--out``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import Any

from bench.speed.spark_cluster import (
    Watch,
    cluster,
    costs_of_jobs,
    peak_memory_mb,
    shuffled_mb,
)
from bench.speed.speed_files import read_options, write_files

LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
N_FEATURES = 10


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


def unit(x0: float) -> list[list[float]]:
    return [[x0] + [0.0] * (N_FEATURES - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_698_884)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--nuisance-trees", type=int, default=40)
    parser.add_argument("--partitions", type=int, default=32)
    parser.add_argument("--memory", type=int, default=5120, help="MB of an executor's JVM")
    parser.add_argument("--task-mb", type=int, default=1200, help="rows and lists of a task")
    options = read_options(parser)
    from doseforest.spark import SparkCausalForest, SparkCausalForestModel

    stages: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, cluster(2, options.memory) as session:

        def stage(name: str, work: Any) -> Any:
            start, sent = time.perf_counter(), shuffled_mb(session)
            with Watch(session) as watch:
                result = work()
            stages[name] = {
                "seconds": time.perf_counter() - start,
                "processor seconds": watch.processor_seconds,
                "shuffled, MB": shuffled_mb(session) - sent,
                "kept rows, MB": watch.kept_mb,
                **{f"{who}, MB": peak for who, peak in peak_memory_mb().items()},
            }
            print(name, stages[name], flush=True)
            return result

        path = f"file://{folder}/orders"
        stage(
            "rows to Parquet", lambda: write_rows(session, options.rows, options.partitions, path)
        )
        train = session.read.parquet(path)
        forest = SparkCausalForest(
            featureCols=[f"x{place}" for place in range(N_FEATURES)],
            treatmentCol="discount",
            labelCol="finished",
            rowIdCol="id",
            nTrees=options.trees,
            nuisanceTrees=options.nuisance_trees,
            taskMemoryMB=options.task_mb,
            doses=list(LEVELS[1:]),
            baseline=0.0,
            progress=True,
        )
        model = stage("fit", lambda: forest.fit(train))
        jobs = costs_of_jobs(session)
        saved = f"file://{folder}/model"
        stage("save", lambda: model.write().save(saved))
        again = stage("load", lambda: SparkCausalForestModel.load(saved))
        average = stage("score all rows", lambda: again.averageDoseResponse(train))
        local = again.toLocal()
        effects = {
            f"x0 = {x0:g}, true {truth}": float(local.effect(unit(x0), 0.5, 0.0)[0])
            for x0, truth in ((-1.0, 0.2), (1.0, 0.4))
        }
    write_report(stages, jobs, options, model.summary, effects, average.tolist())


def write_report(
    stages: dict[str, dict[str, float]],
    jobs: dict[str, dict[str, float]],
    options: argparse.Namespace,
    summary: dict[str, Any],
    effects: dict[str, float],
    average: list[float],
) -> None:
    lines = [
        "# A fit of the paper's size",
        "",
        f"{options.rows:,} rows of six discount levels and {N_FEATURES} covariates, two executors "
        f"of one core and {options.memory:,} MB of heap, tasks of {options.task_mb:,} MB of rows, "
        f"{options.partitions} partitions; {options.trees} trees a round, {options.nuisance_trees} "
        "for each nuisance. `make bench-spark-paper`.",
        "",
        *_table(stages),
        "",
        "Jobs of the fit by their descriptions in the Spark UI, with N for numbers. Those of up to "
        "four forests run side by side, so their seconds overlap.",
        "",
        *_table(_heaviest(jobs)),
    ]
    told = ", ".join(f"{name}: {value:.3f}" for name, value in effects.items())
    lines += [
        "",
        f"Leaves of {summary['leaf_sizes']}; members of the outcome model "
        f"{summary['outcome_weights']}; growth {summary['growth']}.",
        "",
        f"Effect of a discount of 0.5: {told}. Average curve at 0.1 to 0.5: "
        f"{[round(value, 4) for value in average]}.",
    ]
    text = "\n".join(lines) + "\n"
    write_files(options, {"spark_paper_size.md": text})
    print(text)


def _heaviest(jobs: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Jobs by their seconds of tasks; those of less than a hundredth of all are added up."""

    def seconds(name: str) -> float:
        return jobs[name]["seconds of tasks"]

    total = sum(map(seconds, jobs))
    shown = [
        name for name in sorted(jobs, key=seconds, reverse=True) if seconds(name) > total / 100
    ]
    others = [own for name, own in jobs.items() if name not in shown]
    rest = {column: sum(own[column] for own in others) for column in next(iter(jobs.values()))}
    return {**{name: jobs[name] for name in shown}, "all others": rest}


def _table(rows: dict[str, dict[str, float]]) -> list[str]:
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in rows.items():
        cells = (f"{row[own]:,.0f}" if own in row else "" for own in columns)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    main()
