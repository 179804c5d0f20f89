"""The issue of a rule that a spec breaks."""

from planner.errors import Issue


def issue(where: str, message: str, hint: str, *, code: str = "invalid-value") -> Issue:
    """Return the issue at a JSON pointer."""
    return Issue(code=code, pointer=where, message=message, hint=hint)
