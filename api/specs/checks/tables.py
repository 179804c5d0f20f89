"""Rules of single tables that need more than one field."""

from api.schemas.table import TableSpec
from api.specs.input.json import quoted
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import REQUEST_LATENCY
from planner.domain.problem.replica_groups import group_shape
from planner.options.runtimes.registry import RUNTIMES


def check_tables(state: SpecState, issues: IssueCollector) -> None:
    """Report every rule that a table of the spec breaks by itself."""
    for where, table in state.written_tables():
        _check_name(state, table, where, issues)
        _check_types_of_weights(state, table, where, issues)
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


def _check_name(state: SpecState, table: TableSpec, where: str, issues: IssueCollector) -> None:
    """Report a name that the runtime's tables cannot have: its own, or that with the path of the module."""
    runtime = RUNTIMES[state.spec.runtime]
    if reason := runtime.name_issue(table.name):
        message = f"the runtime {runtime.name} has no table {quoted(table.name)}: the name {reason}"
        issues.report(f"{where}/name", message, "name the table otherwise", reads=("/runtime",))
    elif reason := runtime.name_issue(in_plan := state.table_name(where, table)):
        issues.report(
            f"{where}/module_path",
            f"several modules have a table {quoted(table.name)}, so that a plan calls this table"
            f" {quoted(in_plan)}, and the runtime {runtime.name} has no such table: the path {reason}",
            "give the tables different names, or a path without a dot",
            reads=("/runtime", f"{where}/name"),
        )


def _check_types_of_weights(state: SpecState, table: TableSpec, where: str, issues: IssueCollector) -> None:
    """Report a table that the runtime does not hold in any of the types that its weights may have."""
    constraints, runtime = table.constraints, state.spec.runtime
    field, asked = "data_type", [table.data_type]
    if constraints.data_types is not None and constraints.pinned is None:  # a pinned table has its own type
        field, asked = "constraints/data_types", constraints.data_types
    allowed = _types_of_weights(state)
    if set(asked).isdisjoint(allowed):
        what = "hold" if set(asked).isdisjoint(RUNTIMES[runtime].data_types) else "train"
        issues.report(
            f"{where}/{field}",
            f"the runtime {runtime} does not {what} {' or '.join(asked)} weights",
            f"use {' or '.join(allowed)}; outputs and messages may have another type (output_dtype,"
            " forward_comm_dtype, backward_comm_dtype)",
            reads=("/runtime", "/serving", "/objective"),
        )


def _check_places(state: SpecState, table: TableSpec, where: str, issues: IssueCollector) -> None:
    """Report ranks and hosts that the cluster does not have, or that exclude each other."""
    constraints, num_hosts, per_host = table.constraints, state.spec.hardware.num_hosts, state.ranks_per_host
    num_ranks, whole = state.num_ranks, "the cluster"
    groups = state.spec.hardware.replica_groups
    if groups is not None and num_ranks and issues.is_sound("/hardware/replica_groups"):
        if not isinstance(groups.sharding_group_size, int):
            return  # no constraint names ranks there
        num_ranks, whole = groups.sharding_group_size, "a sharding group"
        num_hosts, per_host = group_shape(
            state.num_ranks, per_host, num_ranks, contiguous=groups.use_inter_host_allreduce
        )
    for name, indices, count, reads in (
        ("ranks", constraints.ranks, num_ranks, state.rank_fields),
        ("hosts", constraints.hosts, num_hosts, ("/hardware/num_hosts",)),
    ):
        if indices is not None and count and max(indices) >= count:
            issues.report(
                f"{where}/constraints/{name}",
                f"{max(indices)} is out of range: {whole} has {name} 0 to {count - 1}",
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
    """Name the types that can be trained with an optimizer and that the runtime holds."""
    return " or ".join(name for name in _types_of_weights(state) if DATA_TYPES[name].trainable)


def _types_of_weights(state: SpecState) -> tuple[str, ...]:
    is_served = state.spec.serving is not None or state.spec.objective == REQUEST_LATENCY
    return RUNTIMES[state.spec.runtime].types_of_weights(is_trained=not is_served)
