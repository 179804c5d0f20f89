"""Scores and verifies a placement from its rectangles alone."""
