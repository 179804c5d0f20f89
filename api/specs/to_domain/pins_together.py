"""Pins that contradict each other, or a constraint on several tables."""

from collections.abc import Mapping

from api.specs.input.json import quoted
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.vocabulary import Holders
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.table import PinnedTable, Table
from planner.options.runtimes.registry import RUNTIMES


def check_pins_together(
    state: SpecState, tables: Mapping[str, Table], cluster: Cluster, issues: IssueCollector
) -> None:
    """Report pins that cannot all hold; ``tables`` are those whose own pins are legal, by pointer."""
    pins = {index: pin for index, table in enumerate(tables.values()) if (pin := table.constraints.pinned)}
    if not pins:
        return
    names = [table.name for table in tables.values()]
    _check_same_rank(state, names, pins, issues)
    _check_apart(state, names, pins, cluster, issues)
    _check_modules(state, tables, issues)


def _check_same_rank(
    state: SpecState, names: list[str], all_pins: Mapping[int, PinnedTable], issues: IssueCollector
) -> None:
    for number, group in state.group_indices("same_rank", names, is_partial=True):
        pins = {index: all_pins[index] for index in sorted(group & all_pins.keys())}
        cut = [index for index, pinned in pins.items() if not pinned.sharding_type.is_whole]
        if cut:
            message = f"table {quoted(names[cut[0]])} is pinned to more than the one rank of its group"
        elif len({pinned.pieces[0].site for pinned in pins.values()}) > 1:
            message = "tables of this group are pinned to different ranks"
        else:
            continue
        issues.report(f"/constraints/same_rank/{number}", message, "pin the tables of a group to one rank")


def _check_apart(
    state: SpecState,
    names: list[str],
    pins: Mapping[int, PinnedTable],
    cluster: Cluster,
    issues: IssueCollector,
) -> None:
    ranks_of = {index: _ranks(cluster, pinned) for index, pinned in pins.items()}
    for number, group in state.group_indices("apart", names, is_partial=True):
        taken: set[int] = set()
        for index in sorted(group & pins.keys()):
            name, own_ranks = quoted(names[index]), ranks_of[index]
            if pins[index].sharding_type.facts.holders is Holders.WORLD:
                message = f"table {name} is pinned to all ranks"
            elif not taken.isdisjoint(own_ranks):
                message = f"table {name} is pinned to rank {min(taken & own_ranks)}, like another one of the group"
            else:
                taken |= own_ranks
                continue
            issues.report(f"/constraints/apart/{number}", message, "pin tables of a group to ranks of their own")
            break


def _ranks(cluster: Cluster, pinned: PinnedTable) -> frozenset[int]:
    if pinned.sharding_type.facts.holders is Holders.WORLD:
        return frozenset(range(cluster.world_size))
    if pinned.sharding_type.facts.holders is Holders.RANK:
        return frozenset(piece.site for piece in pinned.pieces)
    local = cluster.ranks_per_group
    return frozenset(rank for piece in pinned.pieces for rank in range(piece.site * local, (piece.site + 1) * local))


def _check_modules(state: SpecState, tables: Mapping[str, Table], issues: IssueCollector) -> None:
    """Report MEAN pools that are right only in a module cut by rows throughout, and a pin that is not."""
    runtime = RUNTIMES[state.spec.runtime]
    other: dict[str, Table] = {}
    for table in tables.values():
        pinned = table.constraints.pinned
        if pinned is not None and pinned.sharding_type not in runtime.row_schemes:
            other.setdefault(table.module_path, table)
    for where, table in tables.items():
        pinned = table.constraints.pinned
        if pinned is None or table.module_path not in other:
            continue
        if runtime.needs_row_wise_module(table, pinned.sharding_type):
            issues.report(
                f"{where}/constraints/pinned/sharding_type",
                f"MEAN-pooled table {quoted(table.name)} is pinned to {pinned.sharding_type.label}, and table "
                f"{quoted(other[table.module_path].name)} of its module is pinned to a scheme that does not cut rows",
                "cut all tables of the module by rows, or this one otherwise",
            )
