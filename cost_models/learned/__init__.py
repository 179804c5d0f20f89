"""Costs learned from measurements: physics first, a correction second, and how far it is known."""
