"""Make the certificate of a plan: what it states, the proof, and what the checker makes of both."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from cost_models.protocol import AssignmentModel, CostModel
from cost_models.vocabulary import Phase, Tier
from planner.domain.formats.canonical_json import digest
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.errors import InvalidProblem, Issue, UnsupportedRequest
from planner.options.enumerate import hot_rows_of
from planner.options.module_rules import module_rules
from planner.orchestration.placement.listed_plan import ListedPlan, find_plan
from planner.output.certificate.check import Problem as Checked
from planner.output.certificate.proof import Wanted, proofs_of
from planner.output.certificate.statement import Axes, Names, choices_of, replaced_in, statement
from planner.pricing.price_options import prune
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.solver.bounds.boxes import affordable_boxes
from planner.solver.evaluate import step_seconds_of
from planner.solver.machine import no_collection
from planner.verification.verify import verify

SCHEMA_VERSION = 1
#: Nominal work on the bound, unless the caller says otherwise: that of a solve of ten seconds.
WORK_SECONDS = 2.5
_BELOW = 1 - 1e-9  # of the bound that is worked out, so that another machine's rounding proves it too
#: What the certificate repeats of a plan document, which states what it was published with.
_OBJECTIVE_KEYS = ("name", "seconds", "lower_bound_seconds", "relative_gap")

Document = dict[str, Any]


@no_collection()
def certify(
    problem: Problem,
    placement: Placement,
    cost_model: CostModel,
    *,
    head: Mapping[str, object],
    objective: Mapping[str, object] | None = None,
    work_seconds: float = WORK_SECONDS,
) -> Document:
    """Return a certificate of a plan, wherever it comes from.

    Parameters
    ----------
    problem, placement, cost_model
        The plan, what it is a plan of, and what its seconds mean.
    head
        Names and digests of plan and spec, which the certificate carries.
    objective
        What the plan document states; ``None`` where it states nothing.
    work_seconds
        Nominal work on the bound, counted in boxes and not by the clock.

    Raises
    ------
    InvalidProblem
        If the plan breaks a rule.
    UnsupportedRequest
        If the cost model prices ranks as a whole, or a table is cut in a way that is not listed for it.
    """
    problem = problem.of_plan(placement.world_size, placement.kv_cache_bytes, use_index_dedup=placement.use_index_dedup)
    if issues := verify(problem, placement):
        raise InvalidProblem(issues)
    if isinstance(cost_model, AssignmentModel):
        raise UnsupportedRequest(
            Issue(
                code="no-certificate",
                pointer="/cost_model",
                message=(
                    f"{cost_model.name} prices ranks as a whole: no bound on its plans is known, and so nothing can be"
                    " certified"
                ),
                hint='choose an additive cost model, such as "roofline", to certify the plan under its prices',
            )
        )
    plan = find_plan(problem, placement, cost_model)
    rules, priced = tuple(module_rules(plan.problem, plan.families).values()), plan.priced
    seconds = step_seconds_of(priced, plan.assignment)
    stated, checked = statement(priced, rules, _names(plan), seconds_without_shards(plan.problem, seconds))
    wanted = Wanted(
        axes=Axes.of(priced),
        rules=rules,
        replaced=replaced_in(stated),
        max_boxes=affordable_boxes(work_seconds, prune(priced).num_options, priced.num_ranks),
        known_seconds=seconds,
    )
    body = {
        "schema_version": SCHEMA_VERSION,
        **head,
        "cost_model": f"{cost_model.name}@{cost_model.version}",
        "problem": stated,
        "plan": choices_of(priced, plan.assignment),
    }
    return sealed(
        body, checked, proofs_of(priced, wanted), {key: (objective or {}).get(key) for key in _OBJECTIVE_KEYS}
    )


def sealed(
    body: Document, checked: Checked, proofs: Iterable[Document], plan_objective: Mapping[str, object]
) -> Document:
    """Return a certificate that claims what the checker works out of the best of the proofs, with its digest.

    ``checked`` is the problem of ``body`` as the checker has read it.
    """
    seconds = checked.objective_of(body["plan"])
    # A bound changes the problem that it is worked out of.
    found = [(copy.copy(checked).bound(proof, seconds), proof) for proof in proofs]
    proven, proof = max(found, key=lambda one: one[0])
    bound = min(proven * _BELOW, seconds)
    claim = {
        "objective_seconds": seconds,
        "bound_seconds": bound,
        "relative_gap": seconds / bound - 1 if bound > 0 else None,
        "plan_objective": dict(plan_objective),
    }
    certificate = {**body, "proof": proof, "claim": claim}
    return {**certificate, "certificate_digest": digest(certificate)}


def _names(plan: ListedPlan) -> Names:
    problem, device = plan.problem, plan.problem.cluster.device_tier
    return Names(
        objective=problem.objective,
        phases=Phase.labels(),
        tiers=Tier.labels(),
        tables=[{"name": table.name, "rows": table.num_embeddings} for table in problem.tables],
        families=(
            {
                "sharding_type": one.scheme.label,
                "compute_kernel": one.kernel.label,
                "data_type": one.storage.data_type.name,
                "cache_load_factor": one.storage.cache_load_factor,
                "replicated": one.geometry.replicated,
                "hot_rows": hot_rows_of(problem, one),
                "hot_tier": device.label,
                "tier": one.storage.tier(device).label,
            }
            for one in (plan.families.families[source] for source in plan.priced.family_source.tolist())
        ),
    )
