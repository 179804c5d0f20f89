"""Values without algorithms: the problem, the plan, and their formats."""
