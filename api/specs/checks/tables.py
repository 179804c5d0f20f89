"""Rules of single tables that need more than one field."""

from api.schemas.table import TableSpec
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from planner.domain.problem.data_type import DATA_TYPES
from planner.options.runtimes.registry import RUNTIMES


def check_tables(state: SpecState, issues: IssueCollector) -> None:
    """Report every rule that a table of the spec breaks by itself."""
    for where, table in state.written_tables():
        if table.optimizer != "none" and not DATA_TYPES[table.data_type].trainable:
            issues.report(
                f"{where}/optimizer",
                f"{table.data_type} weights cannot be trained with {table.optimizer}",
                f"use the optimizer none, or weights of {_trained_types(state)}",
                reads=(f"{where}/data_type",),
            )
        if table.constraints.model_fields_set:
            _check_places(state, table, where, issues)
            _check_choices(state, table, where, issues)


def _check_places(state: SpecState, table: TableSpec, where: str, issues: IssueCollector) -> None:
    """Report ranks and hosts that the cluster does not have, or that exclude each other."""
    constraints, num_hosts = table.constraints, state.spec.hardware.num_hosts
    per_host = state.spec.hardware.ranks_per_host or (state.hardware.ranks_per_host if state.hardware else 0)
    for name, indices, count, reads in (
        ("ranks", constraints.ranks, num_hosts * per_host, state.rank_fields),
        ("hosts", constraints.hosts, num_hosts, ("/hardware/num_hosts",)),
    ):
        if indices is not None and count and max(indices) >= count:
            issues.report(
                f"{where}/constraints/{name}",
                f"{max(indices)} is out of range: the cluster has {name} 0 to {count - 1}",
                f"use numbers below {count}",
                reads=reads,
            )
    if constraints.ranks is not None and constraints.hosts is not None and per_host:
        hosts = set(constraints.hosts)
        if all(rank // per_host not in hosts for rank in constraints.ranks):
            issues.report(
                f"{where}/constraints",
                "none of the ranks is on one of the hosts",
                "give ranks or hosts, or ranks that are on these hosts",
                reads=(*state.rank_fields[1:], f"{where}/constraints/ranks", f"{where}/constraints/hosts"),
            )


def _check_choices(state: SpecState, table: TableSpec, where: str, issues: IssueCollector) -> None:
    """Report choices that leave nothing to choose."""
    constraints, runtime = table.constraints, state.spec.runtime
    types = constraints.data_types or ()
    if types and table.optimizer != "none" and not any(DATA_TYPES[name].trainable for name in types):
        issues.report(
            f"{where}/constraints/data_types",
            f"no kernel trains weights of {', '.join(types)} with {table.optimizer}",
            f'list a type that can be trained ({_trained_types(state)}), or set optimizer "none" for inference',
            reads=(f"{where}/optimizer",),
        )
    if constraints.hot_row_fractions is not None and not RUNTIMES[runtime].splits_off_hot_rows:
        issues.report(
            f"{where}/constraints/hot_row_fractions",
            f"the runtime {runtime} does not split tables by heat",
            'use the runtime "generic", or leave hot_row_fractions out',
            reads=("/runtime",),
        )
    if constraints.min_partition is not None and constraints.min_partition > table.embedding_dim:
        issues.report(
            f"{where}/constraints/min_partition",
            f"{constraints.min_partition} columns are more than the table's {table.embedding_dim}",
            f"use at most {table.embedding_dim}",
        )


def _trained_types(state: SpecState) -> str:
    """Name the types that can be trained and that the runtime looks up."""
    looked_up = RUNTIMES[state.spec.runtime].data_types
    return " or ".join(name for name, kind in DATA_TYPES.items() if kind.trainable and name in looked_up)
