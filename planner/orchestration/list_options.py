"""From a problem to its priced options, or to the reason why some table has none."""

from cost_models.protocol import CostModel
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families, enumerate_families, with_narrowest_pieces
from planner.orchestration.limits.shortfalls import Infeasibility, least_total_bytes, memory_shortfalls, missing_options
from planner.pricing.price_options import price
from planner.solver.problem import SolverProblem

_TIGHT = 0.5  # of all memory


def list_and_price(problem: Problem, cost_model: CostModel) -> tuple[Families, SolverProblem] | Infeasibility:
    """List and price options; tables that fit nowhere get a second chance with the narrowest cuts."""
    listed = _list_once(problem, cost_model)
    if not isinstance(listed, Infeasibility) or not listed.tables:
        return listed
    finer = _list_once(with_narrowest_pieces(problem, listed.tables), cost_model)
    return listed if isinstance(finer, Infeasibility) else finer


def is_short_of_memory(problem: Problem, cost_model: CostModel) -> bool:
    """Whether memory may be what a problem without a plan lacks: its tables cannot fit, or fill half of it at least."""
    families = enumerate_families(problem)
    if families.scheme_issues:
        return False
    priced, tier = price(problem, families, cost_model), problem.cluster.device_tier
    if memory_shortfalls(problem, priced) is not None:
        return True
    return least_total_bytes(priced, (tier,)) > _TIGHT * float(priced.capacity_bytes[:, tier].sum())


def _list_once(problem: Problem, cost_model: CostModel) -> tuple[Families, SolverProblem] | Infeasibility:
    families = enumerate_families(problem)
    if families.scheme_issues:
        return missing_options(problem, families)
    priced = price(problem, families, cost_model)
    return memory_shortfalls(problem, priced) or (families, priced)
