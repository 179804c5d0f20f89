"""What every export needs of a plan document, and the error of one that cannot be written."""

from collections.abc import Mapping

from planner.canonical import plan_digest


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
