"""The rules that a spec must keep: those of the document, and those of the problem that it becomes."""

from api.specs.checks.checkpoint_plan import check_checkpoint_plan, check_loadable_tables
from api.specs.checks.cluster import check_cluster, check_memory
from api.specs.checks.dense import check_dense
from api.specs.checks.hardware_numbers import check_hardware_numbers, cost_model_issue
from api.specs.checks.hash_tables import check_hash_tables, check_hash_tables_of_cluster
from api.specs.checks.index_dedup import check_index_dedup
from api.specs.checks.kv_cache import check_kv_cache, check_kv_cache_fits
from api.specs.checks.modules import check_modules
from api.specs.checks.names import check_groups, check_names
from api.specs.checks.objectives import check_objectives
from api.specs.checks.replica_groups import check_previous_groups, check_replica_groups
from api.specs.checks.serving import check_serving
from api.specs.checks.shared_operators import check_shared_operators
from api.specs.checks.solver import check_solver
from api.specs.checks.stash import check_stash
from api.specs.checks.tables import check_tables
from api.specs.issues import IssueCollector
from api.specs.state import SpecState
from cost_models.errors import CostModelError

_HINT = "docs/spec.md and /docs describe every field"


def check(state: SpecState, issues: IssueCollector) -> None:
    """Report the rules of the document that are broken: fields that contradict other fields."""
    check_cluster(state, issues)
    check_replica_groups(state, issues)
    check_names(state, issues)
    check_tables(state, issues)
    check_modules(state, issues)
    check_hash_tables(state, issues)
    check_groups(state, issues)
    check_serving(state, issues)
    check_kv_cache(state, issues)
    check_objectives(state, issues)
    check_dense(state, issues)
    check_checkpoint_plan(state, issues)
    check_stash(state, issues)
    check_index_dedup(state, issues)
    check_solver(state, issues)
    _check_checkpoint(state, issues)


def check_domain(state: SpecState, issues: IssueCollector) -> None:
    """Report what only values of the domain show: hash tables that no rank runs, tables beyond all memory, prices.

    All are true of a part of the tables, too: what is too large or lacks hardware numbers stays so with more tables.
    """
    check_hash_tables_of_cluster(state, issues)
    check_shared_operators(state, issues)
    check_memory(state, issues)
    check_loadable_tables(state, issues)
    check_previous_groups(state, issues)
    check_kv_cache_fits(state, issues)
    if state.problem is None or state.model is None or not issues.is_sound("/cost_model"):
        return
    try:
        for problem in state.problem.of_each_choice():
            check_hardware_numbers(problem, state.model.model, issues)
    except CostModelError as error:
        if not issues.num_issues:
            raise
        issues.add(cost_model_issue(error, ""))


def _check_checkpoint(state: SpecState, issues: IssueCollector) -> None:
    checkpoint = state.spec.checkpoint
    if checkpoint is not None and checkpoint.policy == "full" and checkpoint.full_every not in (None, 1):
        message = "with the policy full every checkpoint is: leave full_every out, or name another policy"
        issues.report("/checkpoint", message, _HINT, reads=("/checkpoint/policy",))
