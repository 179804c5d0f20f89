"""Small problems and random priced instances for the planner's tests."""

import itertools
from collections.abc import Iterator

import numpy as np

from cost_models.hardware import Hardware, Quantity
from cost_models.registry import make_cost_model
from cost_models.vocabulary import Evidence
from planner.domain.cluster import Cluster
from planner.domain.data_type import DATA_TYPES
from planner.domain.optimizer import OPTIMIZERS
from planner.domain.problem import Problem, Reservation
from planner.domain.table import Feature, Table, TableConstraints
from planner.evaluate import objective_seconds, rank_loads, violations
from planner.priced import Assignment, Objective, PricedOptions, Scope

GIB = 1024**3

_NUMBERS = {
    "hbm_bytes": (80e9, "bytes"),
    "ddr_bytes": (250e9, "bytes"),
    "hbm_bytes_per_second": (2e12, "bytes_per_second"),
    "ddr_bytes_per_second": (5e10, "bytes_per_second"),
    "host_link_bytes_per_second": (3e10, "bytes_per_second"),
    "intra_host_bytes_per_second": (3e11, "bytes_per_second"),
    "inter_host_bytes_per_second": (4e10, "bytes_per_second"),
}


def make_hardware(**overrides: float) -> Hardware:
    """A round-number accelerator without curves."""
    numbers = {
        name: Quantity(value=overrides.get(name, value), unit=unit, evidence=Evidence.ESTIMATED, source="a test")
        for name, (value, unit) in _NUMBERS.items()
    }
    return Hardware(profile="test", family="gpu", ranks_per_host=8, numbers=numbers)


def make_cluster(num_hosts: int = 1, ranks_per_host: int = 4, **overrides: float) -> Cluster:
    return Cluster(hardware=make_hardware(**overrides), num_hosts=num_hosts, ranks_per_host=ranks_per_host)


def make_table(
    name: str = "t",
    rows: int = 1000,
    dim: int = 64,
    *,
    pooling_factor: float = 4.0,
    pooling: str = "sum",
    data_type: str = "fp32",
    optimizer: str = "sgd",
    module_path: str = "",
    constraints: TableConstraints | None = None,
) -> Table:
    return Table(
        name=name,
        num_embeddings=rows,
        embedding_dim=dim,
        features=(Feature(name=f"f_{name}", pooling_factor=pooling_factor),),
        pooling=pooling,
        data_type=DATA_TYPES[data_type],
        optimizer=OPTIMIZERS[optimizer],
        module_path=module_path,
        constraints=constraints or TableConstraints(),
    )


def make_problem(*tables: Table, cluster: Cluster | None = None, **changes: object) -> Problem:
    """Tables on one host of four ranks, nothing reserved, 64 samples per rank."""
    settings: dict[str, object] = {
        "cluster": cluster or make_cluster(),
        "batch_size_per_rank": 64,
        "reservation": Reservation(hbm_fraction=0.0, dense_multiplier=0.0, input_copies=0),
        "pipeline": "none",
    }
    return Problem(tables=tables or (make_table(),), **(settings | changes))  # type: ignore[arg-type]


ROOFLINE = make_cost_model("roofline")
TORCHREC = make_cost_model("torchrec")


def random_priced(
    seed: int,
    *,
    num_tables: int = 3,
    num_hosts: int = 2,
    ranks_per_host: int = 2,
    num_phases: int = 2,
    fill: float = 0.6,
    objective: Objective = Objective.STEP_TIME,
    windows: bool = False,
) -> PricedOptions:
    """A random instance: each table whole, in two pieces, per host, and everywhere."""
    rng = np.random.default_rng(seed)
    num_ranks = num_hosts * ranks_per_host
    option_table, unit_option, scope, seconds, sizes = [], [], [], [], []
    for table in range(num_tables):
        cost, size = rng.uniform(1, 10, num_phases), rng.uniform(10, 100)
        shapes = [
            ([Scope.RANK], 1.0),
            ([Scope.RANK, Scope.RANK], rng.uniform(0.5, 0.8)),
            ([Scope.HOST], 1.2 / ranks_per_host),
            ([Scope.WORLD], 1.5 / num_ranks),
        ]
        for scopes, share in shapes:
            option_table.append(table)
            for kind in scopes:
                unit_option.append(len(option_table) - 1)
                scope.append(kind)
                seconds.append(cost * share * rng.uniform(0.9, 1.1, num_phases))
                sizes.append(np.ceil(size * share))
    total = sum(
        max(sizes[u] for u in range(len(sizes)) if option_table[unit_option[u]] == t) for t in range(num_tables)
    )
    capacity = np.full((num_ranks, 1), np.ceil(total / num_ranks / fill))
    return PricedOptions(
        objective=objective,
        option_table=np.array(option_table),
        option_same_host=np.zeros(len(option_table), dtype=np.bool_),
        unit_option=np.array(unit_option),
        unit_scope=np.array(scope, dtype=np.int8),
        unit_seconds=np.array(seconds),
        unit_bytes=np.array(sizes)[:, None],
        unit_total_bytes=np.array(sizes)[:, None]
        * np.array([1, ranks_per_host, num_ranks])[np.array(scope, dtype=np.int8)][:, None],
        capacity_bytes=capacity,
        host_of_rank=np.arange(num_ranks) // ranks_per_host,
        table_rank_allowed=np.ones((num_tables, num_ranks), dtype=np.bool_),
        phase_weight=np.ones(num_phases),
        phase_window_seconds=rng.uniform(0, 5, num_phases) if windows else np.zeros(num_phases),
        option_source=np.arange(len(option_table)),
    )


def all_assignments(priced: PricedOptions) -> Iterator[Assignment]:
    """Every combination of options and sites, legal or not."""
    first, last = priced.options_of_table
    sites = np.array([priced.num_ranks, priced.num_hosts, 1])[priced.unit_scope]
    for chosen in itertools.product(*(range(a, b) for a, b in zip(first, last, strict=True))):
        units = np.flatnonzero(np.isin(priced.unit_option, chosen))
        for combination in itertools.product(*(range(sites[unit]) for unit in units)):
            unit_site = np.full(priced.num_units, -1)
            unit_site[units] = combination
            yield Assignment(chosen_option=np.array(chosen), unit_site=unit_site)


def brute_force(priced: PricedOptions) -> float | None:
    """The best objective over all legal assignments, or None where there is none."""
    values = [
        objective_seconds(priced, rank_loads(priced, a).seconds)
        for a in all_assignments(priced)
        if not violations(priced, a)
    ]
    return min(values, default=None)
