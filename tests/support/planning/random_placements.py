"""Plans that nobody would make: any legal option of every table, anywhere."""

import numpy as np

from cost_models.registry import make_cost_model
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.options.enumerate import enumerate_families
from planner.orchestration.placement.to_placement import to_placement
from planner.pricing.price_options import price
from planner.solver.problem import Assignment, Scope

ROOFLINE = make_cost_model("roofline")


def random_placement(rng: np.random.Generator, problem: Problem) -> Placement:
    """Any legal option of every table, anywhere."""
    families = enumerate_families(problem)
    priced = price(problem, families, ROOFLINE)
    shapes, sites = [], []
    sites_of = {Scope.RANK: problem.world_size, Scope.HOST: problem.cluster.num_groups, Scope.WORLD: 1}
    option_table = priced.family_table[priced.option_family]
    kernels = np.array([families.families[source].kernel for source in priced.family_source])
    for table in range(priced.num_tables):
        options = np.flatnonzero(option_table == table)
        of_option = kernels[priced.option_family[options]]
        kernel = rng.choice(np.unique(of_option))  # kernels equally often: those with caches have most options
        option = int(rng.choice(options[of_option == kernel]))
        scope = Scope(int(priced.family_scope[priced.option_family[option]]))
        same_host = priced.family_same_host[priced.option_family[option]]
        pieces = priced.unit_shape[priced.unit_option == option]
        chosen = rng.integers(sites_of[scope], size=len(pieces))
        if same_host:
            per_group = problem.cluster.ranks_per_group
            chosen = int(rng.integers(problem.cluster.num_groups)) * per_group + chosen % per_group
        shapes.append(pieces)
        sites.append(chosen)
    assignment = Assignment(piece_shape=np.concatenate(shapes), piece_site=np.concatenate(sites))
    return to_placement(problem, families, priced, assignment)
