"""Logs, metrics and traces, and the request ids that tie them together."""
