"""What moves if hosts are lost or added: cells counted one by one."""

import numpy as np
import pytest

from api.services.studies.kinds.portfolio.moves import (
    Lost,
    Numbering,
    first_lost_hosts,
    numbers_after,
    renumbered,
    replaced_move,
    worst_move,
)
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import Table
from planner.verification.movement import cell_bytes
from tests.support.planning.builders import make_table
from tests.support.planning.layouts import laid_out, laid_out_on
from tests.support.planning.moves import placed_cells

PER_HOST = 2
CLUSTERS = {
    hosts: Cluster(hardware=load_profile("dgx-h100-80g"), num_hosts=hosts, ranks_per_host=PER_HOST)
    for hosts in range(1, 6)
}
LAYOUTS = (
    (Scheme.DATA_PARALLEL, ()),
    (Scheme.TABLE_WISE, ()),
    (Scheme.ROW_WISE, ()),
    (Scheme.TABLE_ROW_WISE, ()),
    (Scheme.COLUMN_WISE, (4, 4)),
    (Scheme.GRID_SHARD, (4, 4)),
)
TABLES = tuple(make_table(f"t{number}", rows=24, dim=8) for number in range(8))


def placement(rng: np.random.Generator, num_hosts: int) -> Placement:
    placed = []
    for table in TABLES:
        scheme, widths = LAYOUTS[rng.integers(len(LAYOUTS))]
        first = int(rng.integers(num_hosts * PER_HOST))
        kernel = Kernel.DENSE if scheme.is_replicated else Kernel.FUSED
        placed.append(
            laid_out(
                table,
                scheme,
                widths=widths,
                num_ranks=num_hosts * PER_HOST,
                ranks_per_host=PER_HOST,
                kernel=kernel,
                first=first,
            )
        )
    return laid_out_on(num_hosts * PER_HOST, PER_HOST, *placed)


def counted(before: Placement, after: Placement, lost: set[int], number_of: dict[int, int]) -> tuple[float, float]:
    """Bytes that come from ranks that are left, and those that no rank has any more."""
    of_cell = {table.name: cell_bytes(table, None) for table in TABLES}
    left = {
        (name, number_of[rank // PER_HOST] * PER_HOST + rank % PER_HOST, row, column)
        for name, rank, row, column in placed_cells(before)
        if rank // PER_HOST not in lost
    }
    held = {(name, row, column) for name, _, row, column in left}
    moved = read = 0.0
    for name, rank, row, column in placed_cells(after):
        if (name, rank, row, column) in left:
            continue
        if (name, row, column) in held:
            moved += of_cell[name]
        else:
            read += of_cell[name]
    return moved, read


@pytest.mark.parametrize("numbering", ["in_order", "fill"])
@pytest.mark.parametrize("seed", range(12))
def test_bytes_are_those_of_cells_by_where_they_come_from(seed: int, numbering: Numbering) -> None:
    rng = np.random.default_rng(seed)
    num_before = int(rng.integers(2, 6))
    num_after = int(rng.integers(1, num_before))
    before, after = placement(rng, num_before), placement(rng, num_after)
    num_lost = num_before - num_after
    found = []
    for first in range(num_before - num_lost + 1):
        lost = set(range(first, first + num_lost))
        left = [host for host in range(num_before) if host not in lost]
        if numbering == "in_order":
            number_of = {host: place for place, host in enumerate(left)}
        else:
            free = iter(sorted(set(range(num_after)) - set(left)))
            number_of = {host: host if host < num_after else next(free) for host in left}
        moved, read = counted(before, after, lost, number_of)
        move = worst_move(TABLES, CLUSTERS[num_after], before, after, lost=first, numbering=numbering)
        assert (move.moved_bytes, move.checkpoint_bytes) == pytest.approx((moved, read)), first
        assert move.lost_host == first
        total = sum(cell_bytes(table, None) * len_cells(after, table) for table in TABLES)
        assert move.total_bytes + move.kept_bytes == pytest.approx(total)
        found.append(moved + read)
    worst = worst_move(TABLES, CLUSTERS[num_after], before, after, lost="any", numbering=numbering)
    assert worst.total_bytes == pytest.approx(max(found))
    last = worst_move(TABLES, CLUSTERS[num_after], before, after, lost="last", numbering=numbering)
    assert last.total_bytes == pytest.approx(found[-1])


def len_cells(placed: Placement, table: Table) -> int:
    return next(one for one in placed.tables if one.name == table.name).shards.num_cells


def test_added_hosts_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    before, after = placement(rng, 2), placement(rng, 4)
    move = worst_move(TABLES, CLUSTERS[4], before, after, lost="any", numbering="in_order")
    assert move.lost_host is None
    assert (move.moved_bytes, move.checkpoint_bytes) == pytest.approx(counted(before, after, set(), {0: 0, 1: 1}))
    assert move.seconds is not None
    assert move.seconds > 0


@pytest.mark.parametrize("seed", range(4))
def test_a_spare_reads_what_no_other_rank_has(seed: int) -> None:
    placed = placement(np.random.default_rng(seed), 3)
    lost = seed % 3
    move = replaced_move(TABLES, CLUSTERS[3], placed, lost=lost)
    moved, read = counted(placed, placed, {lost}, {host: host for host in range(3)})
    assert (move.moved_bytes, move.checkpoint_bytes) == pytest.approx((moved, read))
    assert move.most_read_bytes == pytest.approx(read)  # one host alone reads
    assert replaced_move(TABLES, CLUSTERS[3], placed, lost="any").total_bytes >= move.total_bytes


@pytest.mark.parametrize(("lost", "expected"), [("last", [3]), ("any", [0, 1, 2, 3]), (1, [1]), (9, [3])])
def test_which_hosts_are_lost(lost: Lost, expected: list[int]) -> None:
    assert list(first_lost_hosts(5, 2, lost)) == expected


def test_lost_hosts_are_numbered_after_all_others() -> None:
    assert numbers_after(5, 2, 1, "in_order").tolist() == [0, 3, 4, 1, 2]
    assert numbers_after(5, 2, 1, "fill").tolist() == [0, 3, 4, 1, 2]
    assert numbers_after(5, 1, 1, "in_order").tolist() == [0, 4, 1, 2, 3]
    assert numbers_after(5, 1, 1, "fill").tolist() == [0, 4, 2, 3, 1]


def test_numbers_of_hosts_are_those_of_their_ranks() -> None:
    placed = placement(np.random.default_rng(1), 3)
    other = renumbered(placed, np.array([2, 0, 1]))
    moved = {(name, {0: 4, 1: 5, 2: 0, 3: 1, 4: 2, 5: 3}[rank], *cell) for name, rank, *cell in placed_cells(placed)}
    assert placed_cells(other) == moved
