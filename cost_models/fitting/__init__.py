"""Fits learned cost models to measured rows: pure functions of (rows, seed)."""
