"""Collectives: their bytes, and their seconds over links."""
