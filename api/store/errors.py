"""What a store refuses beside what its contracts name themselves."""


class UnknownPlan(Exception):
    """No plan of this digest is published."""
