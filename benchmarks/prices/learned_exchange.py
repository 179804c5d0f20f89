"""How well learned collectives predict measured ones that they have not seen, next to simpler models.

    python benchmarks/prices/learned_exchange.py [--shared DIR] [--seed 0] [--document FILE]

Measured all-to-alls of CPU ranks on one host (``meta_dlrm_2021/cost_cpu/comm_*.csv.gz``, every file that is there),
split 80/10/10 by task (a line of a file). One model is fitted for all rank counts. Linear regression and gradient
boosting (LightGBM, where it is installed) get the rank's own, the summed, largest, second largest and smallest bytes,
the starts and the number of ranks; boosting stops by the middle tenth, which the learned model is fitted on too. Exits
with 1 where the learned model is not better than each of them.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.inputs.neuroshard_measurements import read_exchanges
from cost_models.arrays import Floats
from cost_models.fitting.exchange import fit_exchange
from cost_models.fitting.exchange_rows import Part, exchanges
from cost_models.learned.document.exchange import exchange_document
from cost_models.learned.exchange.curve import CollectiveKind
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.measurements.schema import Measurements

DIRECTIONS = ("forward", "backward")
LAUNCHES_PER_FILE = 10**6


def read(shared: Path) -> Measurements | None:
    """Rows of all files, or None where there is none."""
    paths = sorted((shared / "meta_dlrm_2021" / "cost_cpu").glob("comm_*.csv.gz"))
    parts = [
        read_exchanges(
            gzip.decompress(path.read_bytes()).decode(),
            name=path.name.partition(".")[0],
            first_launch=i * LAUNCHES_PER_FILE,
        )
        for i, path in enumerate(paths)
    ]
    if not parts:
        return None
    return Measurements({key: np.concatenate([part.columns[key] for part in parts]) for key in parts[0].columns})


def split(rows: Measurements, seed: int) -> tuple[Measurements, Measurements, Measurements]:
    """80, 10 and 10 % of the tasks of each number of ranks."""
    tasks, num_ranks = rows.text("task"), rows.counts("num_ranks")
    part_of: dict[str, int] = {}
    for n in np.unique(num_ranks):
        names = list(dict.fromkeys(tasks[num_ranks == n].tolist()))  # in the order of the file
        order = np.random.default_rng(seed).permutation(len(names))
        bounds = (int(0.8 * len(names)), int(0.9 * len(names)))
        part_of |= {names[i]: int(np.searchsorted(bounds, place, side="right")) for place, i in enumerate(order)}
    part = np.array([part_of[task] for task in tasks.tolist()])
    return rows.take(part == 0), rows.take(part == 1), rows.take(part == 2)


def features(part: Part) -> Floats:
    """What the simpler models see of every rank; (num_rows, 11)."""
    held, late = part.held_bytes, part.start_seconds
    ordered = np.sort(held, axis=1)
    columns = [
        held,
        held.sum(axis=1, keepdims=True),
        ordered[:, -1:],
        ordered[:, -2:-1],
        ordered[:, :1],
        late,
        late.max(axis=1, keepdims=True),
        late.max(axis=1, keepdims=True) - late,
        late.mean(axis=1, keepdims=True),
        late - late.min(axis=1, keepdims=True),
        np.full_like(held, part.num_ranks),
    ]
    return np.stack([np.broadcast_to(column, held.shape).ravel() for column in columns], axis=1)


def kendall_tau(a: Floats, b: Floats) -> float:
    """Rank correlation of two columns (tau-b: pairs that tie in a column do not count there)."""
    agreed = in_a = in_b = 0.0
    for i in range(len(a) - 1):
        up_a, up_b = np.sign(a[i + 1 :] - a[i]), np.sign(b[i + 1 :] - b[i])
        agreed += float(np.sum(up_a * up_b))
        in_a += float(np.sum(up_a != 0))
        in_b += float(np.sum(up_b != 0))
    return agreed / float(np.sqrt(in_a * in_b))


def linear(train: list[Part], parts: list[Part]) -> list[Floats]:
    """Least squares of relative errors with a constant."""
    columns = np.concatenate([features(part) for part in train])
    seconds = np.concatenate([part.seconds.ravel() for part in train])
    columns = np.concatenate([columns, np.ones((len(columns), 1))], axis=1)
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-30)
    weighted = columns / scale / seconds[:, None]
    solution = np.linalg.lstsq(weighted, np.ones(len(seconds)), rcond=None)[0] / scale
    return [np.append(features(part), np.ones((part.seconds.size, 1)), axis=1) @ solution for part in parts]


def boosting(train: list[Part], middle: list[Part], parts: list[Part], objective: str, seed: int) -> list[Floats]:
    """LightGBM on log seconds."""
    import lightgbm

    def data(of: list[Part]) -> object:
        return lightgbm.Dataset(
            np.concatenate([features(part) for part in of]), np.log(np.concatenate([p.seconds.ravel() for p in of]))
        )

    settings = {"objective": objective, "learning_rate": 0.05, "verbose": -1, "num_threads": 1, "seed": seed}
    stop = lightgbm.early_stopping(50, verbose=False)
    model = lightgbm.train(settings, data(train), 1000, [data(middle)], callbacks=[stop])
    return [np.exp(model.predict(features(part))) for part in parts]


def rows_of(direction: str, rows: Measurements) -> list[Part]:
    """Exchanges of one direction, by number of ranks."""
    return list(exchanges(rows)[CollectiveKind("all_to_all", direction)])


def predictions(
    learned: LearnedExchange, train: Measurements, middle: Measurements, test: Measurements, seed: int
) -> Iterator[tuple[str, str, Part, Floats, tuple[Floats, Floats] | None]]:
    """Direction, model, exchanges, predicted seconds and limits, for every part of the test rows."""
    for direction in DIRECTIONS:
        parts, fitted = rows_of(direction, test), rows_of(direction, train)
        found = {"linear": linear(fitted, parts)}
        try:
            for name, objective in (("boosting", "regression"), ("boosting, L1", "regression_l1")):
                found[name] = boosting(fitted, rows_of(direction, middle), parts, objective, seed)
        except ImportError:
            print("LightGBM is not installed: no boosting to compare with", file=sys.stderr)
        for name, results in found.items():
            for part, predicted in zip(parts, results, strict=True):
                yield direction, name, part, predicted, None
        for part in parts:
            held, starts = part.held_bytes, part.start_seconds
            seconds, lower, upper = learned.rank_seconds(CollectiveKind("all_to_all", direction), held, held, starts)
            yield direction, "learned", part, seconds.ravel(), (lower.ravel(), upper.ravel())


def main(arguments: list[str] | None = None) -> int:
    """Print the table; see the module."""
    parser = argparse.ArgumentParser(description="Learned collectives next to simpler models.")
    parser.add_argument("--shared", type=Path, default=Path("../shared"), help="folder of public data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--document", type=Path, help="write the fitted document here")
    given = parser.parse_args(arguments)
    rows = read(given.shared)
    if rows is None:
        print(f"no comm_*.csv.gz under {given.shared / 'meta_dlrm_2021' / 'cost_cpu'}", file=sys.stderr)
        return 1
    train, middle, test = split(rows, given.seed)
    both = Measurements({key: np.concatenate([train.columns[key], middle.columns[key]]) for key in train.columns})
    learned = fit_exchange(both, seed=given.seed)
    if given.document:
        given.document.write_text(json.dumps(exchange_document(learned)))
    print(f"{'direction':<10}{'ranks':>6}  {'model':<14}{'MAPE':>8}{'tau':>8}{'in 90 %':>9}")
    figures: dict[tuple[str, int], dict[str, tuple[float, float]]] = {}
    for direction, name, part, predicted, limits in predictions(learned, train, middle, test, given.seed):
        seconds = part.seconds.ravel()
        error = float(np.mean(np.abs(predicted / seconds - 1)))
        tau = kendall_tau(predicted, seconds)
        figures.setdefault((direction, part.num_ranks), {})[name] = (error, tau)
        held = f"{np.mean((limits[0] <= seconds) & (seconds <= limits[1])):9.1%}" if limits else ""
        print(f"{direction:<10}{part.num_ranks:>6}  {name:<14}{error:>8.2%}{tau:>8.4f}{held}")
    beaten = all(
        models["learned"][0] < error and models["learned"][1] > tau
        for models in figures.values()
        for name, (error, tau) in models.items()
        if name != "learned"
    )
    print("learned is better than all others" if beaten else "learned is NOT better than all others everywhere")
    return 0 if beaten else 1


if __name__ == "__main__":
    sys.exit(main())
