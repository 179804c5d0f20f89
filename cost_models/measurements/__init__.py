"""Measured seconds: one schema for every source, read, checked and split without leaks."""
