"""A spec becomes a planning problem, or a list of issues."""
