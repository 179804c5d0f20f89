"""Queues are bounded."""


class QueueFull(Exception):
    """As many wait as may wait."""
