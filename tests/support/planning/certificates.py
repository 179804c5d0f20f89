"""Certificates for tests: of random priced instances, and of a plan that every kind of rule is about."""

import copy
import functools
from dataclasses import replace
from typing import Any

import numpy as np

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.formats.canonical_json import digest
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import PinnedPiece, PinnedTable, TableConstraints
from planner.options.module_rules import ModuleRule
from planner.output.certificate.certify import certify, sealed
from planner.output.certificate.proof import Wanted, proofs_of
from planner.output.certificate.statement import Axes, Names, choices_of, replaced_in, statement
from planner.pipeline import plan
from planner.solver.evaluate import step_seconds_of
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Assignment, Objective, SolverProblem
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.long_plans import to_document

Document = dict[str, Any]

LIMITS = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.3)
SPEC_DIGEST = "sha256:" + "1" * 64


def certified(
    priced: SolverProblem, assignment: Assignment, rules: tuple[ModuleRule, ...] = (), *, max_boxes: int = 20
) -> Document:
    """A certificate of a random instance."""
    objective = "step_time" if priced.objective is Objective.STEP_TIME else "max_rank_time"
    names = Names(
        objective=objective,
        phases=[f"p{phase}" for phase in range(priced.num_phases)],
        tiers=[f"m{tier}" for tier in range(priced.num_tiers)],
        tables=[{"name": f"t{table}", "rows": 100} for table in range(priced.num_tables)],
        families=[{} for _ in range(priced.num_families)],
    )
    stated, checked = statement(priced, rules, names, 0.0)
    wanted = Wanted(
        axes=Axes.of(priced),
        rules=rules,
        replaced=replaced_in(stated),
        max_boxes=max_boxes,
        known_seconds=step_seconds_of(priced, assignment),
    )
    body = {
        "plan_digest": None,
        "problem": stated,
        "plan": choices_of(priced, assignment),
    }
    return sealed(body, checked, proofs_of(priced, wanted), {})


def some_plan(priced: SolverProblem) -> Assignment | None:
    """A plan that need not be good."""
    if len(np.unique(priced.family_table)) < priced.num_tables:
        return None
    return Greedy(first_only=True).solve(priced, LIMITS).assignment


def ruled_problem() -> Problem:
    """Two hosts of two ranks; tables that are pinned, apart, together, kept off ranks, and of one module that ties."""
    pinned = PinnedTable(
        sharding_type=Scheme.TABLE_WISE,
        compute_kernel=Kernel.FUSED,
        pieces=(PinnedPiece(column_offset=0, num_columns=64, site=1),),
    )
    tables = [
        make_table("pinned", 4000, 64, constraints=TableConstraints(pinned=pinned)),
        make_table("one", 3000, 64, constraints=_only(Scheme.TABLE_WISE)),
        make_table("two", 2500, 64, constraints=_only(Scheme.TABLE_WISE)),
        make_table("left", 2000, 64),
        make_table("right", 2100, 64),
        make_table("low", 1500, 64, constraints=replace(_only(Scheme.TABLE_WISE), ranks=frozenset({0, 1}))),
        make_table("mean", 5000, 64, pooling="mean", module_path="m", pooling_factor=30.0),
        make_table("beside", 5000, 64, module_path="m"),
        make_table("wide", 6001, 256, constraints=_only(Scheme.COLUMN_WISE)),
        make_table("rows", 40001, 64, constraints=_only(Scheme.ROW_WISE)),
        make_table("near", 900, 128, constraints=_only(Scheme.TABLE_COLUMN_WISE)),
    ]
    return make_problem(
        *tables,
        cluster=make_cluster(2, 2, hbm_bytes=16e6),
        apart=(frozenset({1, 2}),),
        same_rank=(frozenset({3, 4}),),
    )


def _only(scheme: Scheme) -> TableConstraints:
    return TableConstraints(sharding_types=frozenset({scheme}), min_partition=32)


@functools.cache
def _ruled() -> tuple[Document, Document]:
    problem = ruled_problem()
    found = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assert found is not None
    document = to_document(found, name="ruled", spec_digest=SPEC_DIGEST, hardware_profile="test")
    head = {"name": "ruled", "spec_digest": SPEC_DIGEST, "plan_digest": document["plan_digest"]}
    objective = document["objective"]
    assert isinstance(objective, dict)
    return certify(problem, found.placement, ROOFLINE, head=head, objective=objective), document


def ruled() -> tuple[Document, Document]:
    """A certificate and the plan document that it is of, to be changed by the caller."""
    return copy.deepcopy(_ruled())


def resealed(certificate: Document) -> Document:
    """The same with the digest that its content has now."""
    certificate.pop("certificate_digest")
    return {**certificate, "certificate_digest": digest(certificate)}


def with_rules(priced: SolverProblem, seed: int) -> tuple[SolverProblem, tuple[ModuleRule, ...]]:
    """A random rule: of two sets of families no plan uses both."""
    rng = np.random.default_rng(seed)
    pick = rng.integers(0, 3, priced.num_families)
    return priced, (ModuleRule(is_of_module=pick > 0, tied=pick == 1, not_by_rows=pick == 2),)
