"""Lower bounds on the objective: what no plan can beat. No code is shared with partitioners.

:func:`planner.solver.bounds.chain.lower_bound` is the one that everybody calls; the chain of relaxations and
why each is admissible stand in :mod:`planner.solver.bounds.relaxation` and :mod:`planner.solver.bounds.dual`.
"""
