"""Runs solves and fits to their end, whatever happens to processes and machines on the way."""
