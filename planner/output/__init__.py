"""What leaves the planner: exports, explanations, certificates and feedback of jobs."""
