"""The states of solves."""

QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED = STATES = ("queued", "running", "succeeded", "failed", "cancelled")
ENDED = frozenset({SUCCEEDED, FAILED, CANCELLED})
