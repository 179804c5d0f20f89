"""What every export needs of a plan document, and the error of one that cannot be written."""

from collections.abc import Mapping, Sequence

from planner.canonical import plan_digest

_MOST_REASONS = 20


class UnexportablePlan(ValueError):
    """A plan document that cannot be written for a runtime."""

    code = "unexportable-plan"


def checked_digest(document: Mapping[str, object]) -> str:
    """Return the digest of a plan document's content.

    Raises
    ------
    UnexportablePlan
        The document names another: it was changed.
    """
    content_digest = plan_digest(document)
    if document.get("plan_digest") != content_digest:
        raise UnexportablePlan(
            f"The plan says {document.get('plan_digest')}, but its content has the digest {content_digest};"
            " it was changed after it was published."
        )
    return content_digest


def refusal_of(what: str, reasons: Sequence[str], runtime: str) -> UnexportablePlan:
    """Return the error of a plan that a runtime cannot have, with a sentence for each table, and the way out."""
    more = f" And {len(reasons) - _MOST_REASONS} more." if len(reasons) > _MOST_REASONS else ""
    told = " ".join(reasons[:_MOST_REASONS])
    return UnexportablePlan(f'{what}. {told}{more} Plan for this runtime: set runtime to "{runtime}" in the spec.')
