"""How a rule that a spec breaks is told."""

from planner.errors import Issue


def rule(where: str, message: str, hint: str, *, code: str = "invalid-value") -> Issue:
    """Return a broken rule."""
    return Issue(code=code, pointer=where, message=message, hint=hint)
