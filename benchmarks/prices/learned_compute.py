"""The learned compute model on NeuroShard's measured launches, next to three baselines, on launches none of them saw.

One model for all rank counts, fitted to 80 % of the launches of ``compute_4`` and ``compute_8``, calibrated on 10 %,
judged by 10 %. A file of another rank count that lies next to them is judged as a whole: nothing was learned from it.
Baselines are fitted for every file by itself, on the same launches, as published models are:

- lookup: pooling x dim, one coefficient (the heuristic of NeuroShard's baselines);
- linear: non-negative least squares on seven sums over the tables;
- boosting: gradient boosted trees on 14 sums and largest values, log target, stopped early by the validation launches
  (needs ``lightgbm``; left out with a message where it is missing).
"""

import argparse
import gzip
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.inputs.neuroshard_measurements import read_lookups, table_facts
from cost_models.arrays import Floats
from cost_models.fitting.assessment import HeldOutResult, figures
from cost_models.fitting.compute import fit_compute
from cost_models.fitting.launches import Launches, launches
from cost_models.fitting.model import held_out_result
from cost_models.fitting.non_negative import fit_non_negative
from cost_models.fitting.split import TRAINING_SHARE, VALIDATION_SHARE, Split, split_by_task
from cost_models.learned.document.compute import fitted_document, parse_fitted
from cost_models.learned.lookups.columns import LookupColumns
from cost_models.learned.lookups.fitted import FittedCompute
from cost_models.measurements.schema import joined

SHARED = Path("../shared")
LEARNED_FROM = (4, 8)
TIMED_SHARDS = 10_000
#: Share of the tables that are held out for the test of a split by table.
_TEST_TABLES_SHARE = 0.25


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 where the measured launches are not there."""
    parser = argparse.ArgumentParser(description="The learned compute model next to baselines, on held-out launches.")
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by-table", action="store_true", help="also fit with tables kept for the test")
    given = parser.parse_args(arguments)
    folder = given.shared / "meta_dlrm_2021"
    files = {
        int(found[1]): path
        for path in sorted((folder / "cost_cpu").glob("compute_*.csv.gz"))
        if (found := re.fullmatch(r"compute_(\d+)\.csv\.gz", path.name))
    }
    if not set(LEARNED_FROM) <= files.keys():
        print(f"no measured launches of 4 and 8 ranks in {folder / 'cost_cpu'}", file=sys.stderr)
        return 1
    facts = table_facts(json.loads((folder / "tables.json").read_text())["tables"])
    by_ranks = {
        ranks: read_lookups(
            gzip.decompress(files[ranks].read_bytes()).decode(), facts, num_ranks=ranks, name=f"compute_{ranks}"
        )
        for ranks in sorted(files)
    }
    learned_from = launches(joined([by_ranks[ranks] for ranks in LEARNED_FROM]))
    split = split_by_task(learned_from, given.seed)
    fitted, seconds = _fit(learned_from, split, given.seed)
    print(f"split by task, seed {given.seed}; fitted in {seconds:.0f} s", flush=True)
    _print_learned("learned", fitted, learned_from.take(split.test))
    for ranks in by_ranks.keys() - set(LEARNED_FROM):
        _print_learned("learned, ranks not seen", fitted, launches(by_ranks[ranks]))
    for name, fit in (("lookup", _lookup), ("linear", _linear), ("boosting", _boosting)):
        _print_baseline(name, fit, learned_from, split)
    _print_speed(fitted, learned_from)
    if given.by_table:
        split = split_by_table(learned_from, given.seed)
        fitted, seconds = _fit(learned_from, split, given.seed)
        print(f"split by table, seed {given.seed}: {len(split.training)} launches to learn from; {seconds:.0f} s")
        _print_learned("learned", fitted, learned_from.take(split.test))
    return 0


def split_by_table(launches: Launches, seed: int) -> Split:
    """Hold a quarter of the tables out for the test; launches that mix them with others are left out."""
    random = np.random.default_rng(seed)
    tables, table = np.unique(launches.table, return_inverse=True)
    is_held_out = random.permutation(len(tables))[table] < _TEST_TABLES_SHARE * len(tables)
    share = np.bincount(launches.launch, is_held_out, launches.num_launches) / launches.num_shards
    seen = random.permutation(np.flatnonzero(share == 0))
    calibrating = round(len(seen) * VALIDATION_SHARE / (TRAINING_SHARE + VALIDATION_SHARE))
    return Split(training=seen[calibrating:], validation=seen[:calibrating], test=np.flatnonzero(share == 1))


def _fit(rows: Launches, split: Split, seed: int) -> tuple[FittedCompute, float]:
    started = time.perf_counter()
    fitted = fit_compute(rows, split, seed=seed)
    return parse_fitted(fitted_document(fitted)), time.perf_counter() - started


def _print_learned(name: str, fitted: FittedCompute, test: Launches) -> None:
    for ranks in np.unique(test.ranks_per_host).tolist():
        _print_figures(name, ranks, held_out_result(fitted, test.take(np.flatnonzero(test.ranks_per_host == ranks))))


def _print_figures(name: str, ranks: int, rated: HeldOutResult, *, intervals: bool = True) -> None:
    found = figures(name, rated)
    line = (
        f"{name:24} {ranks:3} ranks  {found.num_rows:5} launches  MAPE {100 * found.mean_relative_error:5.2f} %  "
        f"median {100 * found.median_relative_error:5.2f} %  tau {found.rank_correlation:.4f}"
    )
    if intervals:
        line += f"  covered {100 * found.coverage:.1f} %  upper/lower {found.mean_interval_ratio:.2f}"
    print(line, flush=True)


def _print_baseline(
    name: str, fit: Callable[[Launches, Split], Callable[[Launches], Floats] | None], rows: Launches, split: Split
) -> None:
    """Fit a baseline for every number of ranks, and print its figures."""
    for ranks in LEARNED_FROM:
        parts = [part[rows.ranks_per_host[part] == ranks] for part in (split.training, split.validation, split.test)]
        predict = fit(rows, Split(training=parts[0], validation=parts[1], test=parts[2]))
        if predict is None:
            print(f"{name}: left out, lightgbm is not installed")
            return
        test = rows.take(parts[2])
        predicted = np.maximum(predict(test), 1e-6)
        rated = HeldOutResult(
            measured_seconds=test.seconds[:, 0],
            predicted_seconds=predicted,
            lower_seconds=predicted,
            upper_seconds=predicted,
        )
        _print_figures(name, ranks, rated, intervals=False)


def _sums(rows: Launches, of_shard: Callable[[LookupColumns], list[Floats]]) -> Floats:
    """Return sums over the shards of launches, (num_launches, num_sums)."""
    return np.stack([np.bincount(rows.launch, value, rows.num_launches) for value in of_shard(rows.columns)], axis=1)


def _lookup(rows: Launches, split: Split) -> Callable[[Launches], Floats]:
    def sums(of: Launches) -> Floats:
        return _sums(of, lambda columns: [columns.lookups * columns.shard_columns])

    training = rows.take(split.training)
    coefficient = fit_non_negative(sums(training), training.seconds[:, 0])
    return lambda test: sums(test) @ coefficient


def _seven_terms(columns: LookupColumns) -> list[Floats]:
    one, width = np.ones(columns.num_shards), columns.shard_columns
    lookups, distinct = columns.lookups, columns.distinct_rows
    return [one, width, lookups, lookups * width, distinct, distinct * width, lookups - distinct]


def _linear(rows: Launches, split: Split) -> Callable[[Launches], Floats]:
    training = rows.take(split.training)
    coefficients = fit_non_negative(_sums(training, _seven_terms), training.seconds[:, 0])
    return lambda test: _sums(test, _seven_terms) @ coefficients


def _fourteen_features(rows: Launches) -> Floats:
    columns = rows.columns
    largest = [columns.lookups * columns.shard_columns, columns.distinct_rows * columns.shard_columns]
    largest += [columns.shard_rows, columns.lookups, columns.distinct_rows, columns.shard_columns]
    most = np.zeros((rows.num_launches, len(largest)))
    for i, value in enumerate(largest):
        np.maximum.at(most[:, i], rows.launch, value)
    rows_of_tables = _sums(rows, lambda of: [np.log(of.shard_rows)])
    return np.concatenate([_sums(rows, _seven_terms), rows_of_tables, most], axis=1)


def _boosting(rows: Launches, split: Split) -> Callable[[Launches], Floats] | None:
    try:
        import lightgbm
    except ImportError:
        return None
    training, validation = rows.take(split.training), rows.take(split.validation)
    sets = [lightgbm.Dataset(_fourteen_features(of), np.log(of.seconds[:, 0])) for of in (training, validation)]
    settings = {"learning_rate": 0.03, "num_leaves": 31, "min_data_in_leaf": 10, "verbose": -1, "seed": 0}
    stop = [lightgbm.early_stopping(100, verbose=False)]
    trees = lightgbm.train(settings, sets[0], 3000, valid_sets=[sets[1]], callbacks=stop)
    return lambda test: np.exp(trees.predict(_fourteen_features(test)))


def _print_speed(fitted: FittedCompute, rows: Launches) -> None:
    """Print the seconds of pricing shards, the best of many runs, since the machine has other things to do."""
    chosen = np.arange(TIMED_SHARDS) % rows.columns.num_shards
    columns = rows.columns.take(chosen)
    compute = fitted.compute

    def price() -> float:
        started = time.perf_counter()
        compute.shard_seconds(columns, 0.0)
        return time.perf_counter() - started

    print(f"pricing {TIMED_SHARDS} shards: {1e3 * min(price() for _ in range(200)):.2f} ms")


if __name__ == "__main__":
    raise SystemExit(main())
