"""Runs the solver on a problem, and makes verified plans of what comes back."""
