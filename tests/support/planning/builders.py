"""Small problems and random priced instances for the planner's tests."""

from dataclasses import dataclass, replace

import numpy as np

from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.hardware.profile_fields import FIELDS
from cost_models.registry import make_cost_model
from cost_models.vocabulary import Evidence
from planner.domain.problem.access import AccessStatistics
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import Problem, Reservation
from planner.domain.problem.table import Feature, Table, TableConstraints
from planner.options.schemes.widths import Widths, piece_widths, whole_width
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem
from tests.support.planning.exhaustive import all_assignments, best_assignment, brute_force

__all__ = ["all_assignments", "best_assignment", "brute_force"]

GIB = 1024**3

_NUMBERS: dict[str, float] = {
    "hbm_bytes": 80e9,
    "ddr_bytes": 250e9,
    "hbm_bytes_per_second": 2e12,
    "ddr_bytes_per_second": 5e10,
    "host_link_bytes_per_second": 3e10,
    "intra_host_bytes_per_second": 3e11,
    "inter_host_bytes_per_second": 4e10,
}


#: Block storage for ``make_hardware`` and ``make_cluster``: a drive of 1 TB.
SSD = {
    "ssd_bytes": 1e12,
    "ssd_bytes_per_second": 6e9,
    "ssd_write_bytes_per_second": 3e9,
    "ssd_reads_per_second": 1e6,
    "ssd_block_bytes": 4096,
}


#: Storage-class memory for ``make_hardware`` and ``make_cluster``, read faster than written, in blocks of 256 bytes.
SCM = {
    "scm_bytes": 500e9,
    "scm_bytes_per_second": 1e10,
    "scm_write_bytes_per_second": 4e9,
    "scm_block_bytes": 256,
}


def make_hardware(**overrides: float) -> Hardware:
    """A round-number accelerator without curves, and without block storage where none is given."""
    units = {name: field.unit for name, field in FIELDS.items()}
    numbers = {
        name: Quantity(value=value, unit=units[name], evidence=Evidence.ESTIMATED, source="a test")
        for name, value in (_NUMBERS | overrides).items()
    }
    return Hardware(profile="test", family="gpu", ranks_per_host=8, numbers=numbers)


def make_cluster(
    num_hosts: int = 1, ranks_per_host: int = 4, pod_size: int | None = None, **overrides: float
) -> Cluster:
    hardware = make_hardware(**overrides)
    return Cluster(hardware=hardware, num_hosts=num_hosts, ranks_per_host=ranks_per_host, pod_size=pod_size)


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
    access: AccessStatistics | None = None,
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
        access=access,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomFamily:
    """What random instances know of one family of a table."""

    scope: Scope
    widths: Widths
    share: float  # of the table's cost and size that one of the ranks of a piece as wide as the table has
    min_pieces: int = 1
    same_host: bool = False


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
    columns: int = 16,
    max_pieces: int = 3,
    same_host: bool = False,
    host_pieces: bool = False,
    slowdown: bool = False,
    equal_capacity: bool = True,
) -> SolverProblem:
    """A random instance: each table whole, in column pieces, per host and everywhere.

    Of 16 columns, pieces have 4, 8 or 12; listed are 8 + 8 and 8 + 4 + 4, but not 12 + 4. Seconds
    are nearly affine in columns. At ``fill`` up to 0.6 all tables together fit everywhere.

    Parameters
    ----------
    fill
        Bytes of all tables, whole, over those of the smallest rank times the number of ranks.
    same_host
        Whether there is a family, too, whose column pieces must share a host.
    host_pieces
        Whether there is a family, too, whose column pieces lie on a whole host each.
    slowdown
        Whether ranks are of unequal speed in each phase.
    equal_capacity
        Whether ranks have equally many bytes.
    """
    rng = np.random.default_rng(seed)
    num_ranks = num_hosts * ranks_per_host
    whole, pieces = whole_width(columns), piece_widths(columns, 4, columns, max_pieces)
    assert pieces is not None
    kinds = [
        RandomFamily(scope=Scope.RANK, widths=whole, share=1.0),
        RandomFamily(scope=Scope.RANK, widths=pieces, share=1.0, min_pieces=2),
        RandomFamily(scope=Scope.HOST, widths=whole, share=1.2 / ranks_per_host),
        RandomFamily(scope=Scope.WORLD, widths=whole, share=1.5 / num_ranks),
    ]
    if host_pieces:
        kinds.append(RandomFamily(scope=Scope.HOST, widths=pieces, share=1.2 / ranks_per_host, min_pieces=2))
    if same_host:
        kinds.insert(2, RandomFamily(scope=Scope.RANK, widths=pieces, share=0.8, min_pieces=2, same_host=True))
    families = [kind for _ in range(num_tables) for kind in kinds]
    cost = rng.uniform(1, 10, (num_tables, num_phases))
    size = np.floor(rng.uniform(10, 100, num_tables))
    fixed = rng.uniform(0.05, 0.25, num_tables)  # part of the cost that a piece of no columns would have
    seconds, sizes, totals = [], [], []
    for index, family in enumerate(families):
        table = index // len(kinds)
        ranks = {Scope.RANK: 1, Scope.HOST: ranks_per_host, Scope.WORLD: num_ranks}[family.scope]
        for width in family.widths.columns / columns:
            affine = cost[table] * (fixed[table] + (1 - fixed[table]) * width)
            seconds.append(affine * family.share * rng.uniform(0.9, 1.1, num_phases))
            sizes.append(max(1.0, np.floor(size[table] * width * family.share)))
            totals.append(sizes[-1] * ranks - (rng.integers(0, 2) if ranks > 1 else 0))
    capacity = np.full((num_ranks, 1), np.ceil(np.sum(size) / num_ranks / fill))
    speed = np.ones((num_ranks, num_phases))
    phase_windows = rng.uniform(0, 5, num_phases) if windows else np.zeros(num_phases)
    if slowdown:
        speed = rng.uniform(1, 2, (num_ranks, num_phases))
    if not equal_capacity:
        capacity = np.floor(capacity * rng.uniform(1, 1.8, (num_ranks, 1)))
    num_shapes = np.array([len(family.widths.columns) for family in families])
    first_shape = np.cumsum(num_shapes) - num_shapes
    cuts = [first + cut for family, first in zip(families, first_shape, strict=True) for cut in family.widths.cuts]
    return SolverProblem(
        objective=objective,
        table_columns=np.full(num_tables, columns),
        family_table=np.repeat(np.arange(num_tables), len(kinds)),
        family_scope=np.array([family.scope for family in families], dtype=np.int8),
        family_same_host=np.array([family.same_host for family in families], dtype=np.bool_),
        family_min_pieces=np.array([family.min_pieces for family in families]),
        family_max_pieces=np.array([family.widths.max_pieces for family in families]),
        shape_family=np.repeat(np.arange(len(families)), num_shapes),
        shape_columns=np.concatenate([family.widths.columns for family in families]),
        shape_seconds=np.array(seconds),
        shape_bytes=np.array(sizes)[:, None],
        shape_total_bytes=np.array(totals)[:, None],
        option_family=np.repeat(np.arange(len(families)), [len(family.widths.cuts) for family in families]),
        unit_option=np.repeat(np.arange(len(cuts)), [len(cut) for cut in cuts]),
        unit_shape=np.concatenate(cuts),
        capacity_bytes=capacity,
        host_of_rank=np.arange(num_ranks) // ranks_per_host,
        rank_slowdown=speed,
        table_rank_allowed=np.ones((num_tables, num_ranks), dtype=np.bool_),
        phase_weight=np.ones(num_phases),
        phase_window_seconds=phase_windows,
        family_source=np.arange(len(families)),
    )


def with_kinds(priced: SolverProblem, seed: int, *, scale: float = 3.0, num_modules: int = 1) -> SolverProblem:
    """A random instance whose plans pay starts: the first family of every table of a module is of one kind, and so on.

    Tables are in modules by turns.
    """
    rng = np.random.default_rng(seed)
    number = priced.num_families // priced.num_tables
    module = np.repeat(np.arange(priced.num_tables) % num_modules, number)
    kinds = number * num_modules
    return replace(
        priced,
        family_kind=np.tile(np.arange(number), priced.num_tables) + number * module,
        kind_start_seconds=scale * rng.uniform(0, 1, (kinds, priced.num_phases)),
        charged_kinds=np.zeros(kinds, dtype=np.bool_),
    )


def narrowest_shape(priced: SolverProblem, table: int, family: int) -> int:
    """The narrowest shape of one of a table's families, counted from 0."""
    return int(priced.shapes_of_family[0][priced.families_of_table[0][table] + family])


def make_assignment(pieces: list[tuple[int, int]]) -> Assignment:
    """An assignment of (shape, site) pairs, in the order of tables."""
    shape, site = zip(*pieces, strict=True)
    return Assignment(piece_shape=np.array(shape), piece_site=np.array(site))
