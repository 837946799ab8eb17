"""Growth on two executors beside the local engine on the same rows, and Spark ML's forest.

    python -m bench.speed.spark_growth --rows 1000000 --trees 50

Every way must give the same trees, bit by bit. Processor seconds are those of all processes, JVMs
among them. Ways take turns, and medians are told: a processor's speed varies. Starting the cluster,
making the rows and a first forest of each way, during which JVMs compile what they run, are not
counted.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np

from bench.speed.spark_cluster import cluster, peak_memory_mb, processor_seconds, shuffled_mb
from bench.speed.speed_files import read_options, write_files
from doseforest.data.binning import FeatureBins
from doseforest.data.sampling import SamplingPlan
from doseforest.engine.growth.forest_builder import finish_group, join_groups, tree_groups
from doseforest.engine.growth.grower import StopRules, grow_trees
from doseforest.engine.splits.mean_statistic import MeanCurveStatistic
from doseforest.spark.blocks import GrowthBlock, TrainingBlock
from doseforest.spark.engine import GrowthLimits
from doseforest.spark.grow import grow_forest
from doseforest.spark.growth_spec import GrowthSpec

N_FEATURES, N_BINS, N_CHANNELS, N_PARTITIONS = 20, 64, 16, 4
N_EXECUTORS = 2
N_TURNS = 3
WARM_TREES = 4  # of Spark ML, which takes minutes
LOCAL = "local engine, two threads"  # as many as executors have cores: busy neighbours cost time
ALONE = "local engine, one thread"
BARS = {"tasks": 1.5, "hybrid": 3.0}  # processor time over that of two threads


def make_block(part: int, n_rows: int) -> TrainingBlock:
    """Rows of one partition: random bins, curves of three of them, on an exact grid."""
    rng = np.random.default_rng(part)
    bins = rng.integers(0, N_BINS, size=(n_rows, N_FEATURES), dtype=np.uint8)
    doses = np.linspace(0, 1, N_CHANNELS)
    signal = np.sin(bins[:, :1] / 10.0) * doses + (bins[:, 1:2] > 30) * doses**2
    values = signal + bins[:, 2:3] / 64.0 + rng.normal(size=(n_rows, N_CHANNELS))
    channels = (np.rint(np.clip(values, -8, 8) * 2**12) / 2**12).astype(np.float32)
    ids = np.arange(n_rows, dtype=np.int64) + part * n_rows
    return TrainingBlock(GrowthBlock(bins, channels, ids), channels, None)


def make_spec(min_node_size: int, max_depth: int | None) -> GrowthSpec:
    statistic = MeanCurveStatistic(
        channels=np.zeros((0, N_CHANNELS), np.float32),
        centre=np.zeros(N_CHANNELS),
        quadrature=np.ones(N_CHANNELS),
        distance="l2",
        weighted=False,
        zeta=0.0,
        positivity="none",
        noise_per_row=0.0,
    )
    return GrowthSpec(
        statistic=statistic,
        rules=StopRules(min_node_size=min_node_size, max_depth=max_depth),
        plan=SamplingPlan(seed=1),
        n_bins=np.full(N_FEATURES, N_BINS, np.int32),
        mtry=N_FEATURES,
    )


def make_bins() -> FeatureBins:
    edges = np.tile(np.arange(N_BINS - 1) + 0.5, N_FEATURES)
    return FeatureBins(edges, np.arange(N_FEATURES + 1) * (N_BINS - 1))


def grow_locally(
    n_rows: int, spec: GrowthSpec, n_trees: int, n_threads: int
) -> tuple[str, float, float]:
    """The local engine, its trees in groups of a million rows as by default.

    Digest of the forest, processor seconds of this process, seconds.
    """
    from dataclasses import replace

    from doseforest.engine.growth.local_engine import LocalEngine

    whole = _all_rows(n_rows)
    before, start = time.process_time(), time.perf_counter()
    engine = LocalEngine(
        whole.leaf_rows(spec.n_bins, None),
        replace(spec.statistic, channels=whole.growth.channels),
        spec.rules,
        spec.plan,
        mtry=spec.mtry,
        n_threads=n_threads,
        histogram_bytes=512 * 2**20,
    )
    groups, bins = [], make_bins()
    for trees in tree_groups(n_trees, trees_at_once=4):
        table = grow_trees(engine, spec.rules, seed=spec.plan.seed, trees=trees)
        groups.append(finish_group(engine, trees, table, bins))
    grown = join_groups(groups)
    seconds = time.process_time() - before, time.perf_counter() - start
    return digest(grown), *seconds


@cache
def _all_rows(n_rows: int) -> TrainingBlock:
    blocks = [make_block(part, n_rows // N_PARTITIONS) for part in range(N_PARTITIONS)]
    joined = GrowthBlock.join(block.growth for block in blocks)
    return TrainingBlock(joined, np.concatenate([own.leaf_channels for own in blocks]), None)


def digest(forest: Any) -> str:
    """Of the nodes and of what their leaves hold."""
    total = hashlib.sha256()
    for part in (forest.nodes, forest.leaf_sums, forest.leaf_weights):
        total.update(part.tobytes())
    return total.hexdigest()


def measured(session: Any, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a piece of work tells, with its cost."""
    before, start, shuffled = processor_seconds(), time.perf_counter(), shuffled_mb(session)
    told = work()
    return {
        "processor seconds": processor_seconds() - before,
        "seconds": time.perf_counter() - start,
        "shuffled, MB": shuffled_mb(session) - shuffled,
        **told,
        **{f"{name}, MB": peak for name, peak in peak_memory_mb().items()},
    }


def median(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Every figure's median over the turns."""
    figures = [name for name, value in turns[0].items() if not isinstance(value, str)]
    return {name: float(np.median([turn[name] for turn in turns])) for name in figures}


def compare_growth(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Growth by the local engine and on a cluster, in turns."""
    deep, shallow = make_spec(options.leaf, None), make_spec(options.leaf, options.depth)
    hybrid = f"hybrid, tasks of {options.task_mb} MB"
    ways = {
        "tasks": (deep, "tasks", 2**28),
        hybrid: (deep, "hybrid", options.task_mb * 2**20),
        f"tasks, depth {options.depth}": (shallow, "tasks", 2**28),
    }
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as apart,
        cluster(N_EXECUTORS, options.memory) as session,
    ):
        parts = session.sparkContext.parallelize(range(N_PARTITIONS), N_PARTITIONS)
        n_rows = options.rows // N_PARTITIONS
        blocks = parts.map(lambda part: make_block(part, n_rows)).persist()
        blocks.count()

        def locally(n_threads: int) -> dict[str, Any]:
            asked = apart.submit(grow_locally, options.rows, deep, options.trees, n_threads)
            forest, processor, seconds = asked.result()
            return {"processor seconds": processor, "seconds": seconds, "forest": forest}

        def on_cluster(name: str) -> dict[str, Any]:
            spec, mode, task_bytes = ways[name]
            limits = GrowthLimits(task_bytes=task_bytes)
            how: dict[str, Any] = {"n_trees": options.trees, "mode": mode, "limits": limits}
            forest, report = grow_forest(blocks, spec, make_bins(), **how)
            return {
                "rounds": report.n_rounds,
                "tasks": report.n_tasks,
                "forest": digest(forest),
            }

        table: dict[str, list[dict[str, Any]]] = {name: [] for name in (ALONE, LOCAL, *ways)}
        for turn in range(1 + N_TURNS):  # the first is not counted
            for name, turns in table.items():
                if name in ways:
                    told = measured(session, lambda own=name: on_cluster(own))
                else:
                    told = locally(1 if name == ALONE else N_EXECUTORS)
                print(turn, name, told, flush=True)
                turns += [told] if turn else []
    same = {turn["forest"] for name in (ALONE, LOCAL, "tasks", hybrid) for turn in table[name]}
    if len(same) > 1:
        raise SystemExit("the forests differ from the local engine's")
    return {name: median(turns) for name, turns in table.items()}


def grow_by_spark_ml(options: argparse.Namespace) -> dict[str, Any]:
    """Spark ML's regression forest: one output, the same rows, features, bins, depth and trees."""
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.regression import RandomForestRegressor

    n_rows = options.rows // N_PARTITIONS
    with cluster(N_EXECUTORS, options.memory) as session:
        parts = session.sparkContext.parallelize(range(N_PARTITIONS), N_PARTITIONS)

        def rows(part: int) -> Any:
            block = make_block(part, n_rows)
            table = np.column_stack([block.growth.bins, block.leaf_channels[:, -1]]).tolist()
            return iter(table)

        names = [f"x{place}" for place in range(N_FEATURES)]
        schema = ", ".join(f"{name} double" for name in (*names, "label"))
        frame = session.createDataFrame(parts.flatMap(rows), schema)
        frame = VectorAssembler(inputCols=names, outputCol="features").transform(frame)
        frame = frame.select("features", "label").persist()
        frame.count()
        forest = RandomForestRegressor(
            maxDepth=options.depth,
            maxBins=N_BINS,
            featureSubsetStrategy="all",
            subsamplingRate=0.25,
            bootstrap=False,
            minInstancesPerNode=options.leaf,
            seed=1,
        )
        forest.setNumTrees(WARM_TREES).fit(frame)

        def fit() -> dict[str, Any]:
            forest.setNumTrees(options.trees).fit(frame)
            return {}

        return measured(session, fit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--leaf", type=int, default=20, help="smallest leaf")
    parser.add_argument("--memory", type=int, default=2048, help="MB of an executor's JVM")
    parser.add_argument("--depth", type=int, default=8, help="of the comparison with Spark ML")
    parser.add_argument("--task-mb", type=int, default=4, help="rows of a task in the hybrid")
    options = read_options(parser)
    table = compare_growth(options)
    table[f"Spark ML, one output, depth {options.depth}"] = grow_by_spark_ml(options)
    write_report(table, options)


def write_report(table: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    columns = list(dict.fromkeys(name for row in table.values() for name in row))
    cpu = table[LOCAL]["processor seconds"]
    lines = [
        "# Growth on a cluster of two executors",
        "",
        f"{options.rows:,} rows, {N_FEATURES} features of {N_BINS} bins, {N_CHANNELS} channels, "
        f"{options.trees} trees, leaves of {options.leaf}; a tree is grown by a quarter of the "
        "rows. Forests without a limit of depth are the local engine's, bit by bit, trees and leaf "
        f"sums. Medians of {N_TURNS} turns; "
        "each way has grown its forest once before, which is not counted; Spark ML has one turn "
        f"and has grown {WARM_TREES} trees. `make bench-spark`.",
        "",
        "| | " + " | ".join((*columns, "processor time over that of two threads")) + " |",
        "|---" * (len(columns) + 2) + "|",
    ]
    for name, row in table.items():
        cells = [f"{row[column]:,.0f}" if column in row else "" for column in columns]
        ratio = f"{row['processor seconds'] / cpu:.2f}" if "depth" not in name else ""
        lines.append(f"| {name} | " + " | ".join((*cells, ratio)) + " |")
    lines += ["", *(_verdict(name, row, cpu) for name, row in table.items() if _bar(name))]
    text = "\n".join(lines) + "\n"
    write_files(options, {"spark_growth.md": text})
    print(text)


def _bar(name: str) -> float | None:
    return None if "depth" in name else BARS.get(name.split(",")[0])


def _verdict(name: str, row: dict[str, Any], local: float) -> str:
    bar, ratio = _bar(name), row["processor seconds"] / local
    said = "PASS" if bar is not None and ratio <= bar else "FAIL"
    return f"- {said}: {name}: at most {bar} times that of two threads; measured {ratio:.2f}"


if __name__ == "__main__":
    main()
