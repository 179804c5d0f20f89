"""What a JSON document is by its keys, so that one in the place of another is told as such, and not field by field."""


def is_plan(document: object) -> bool:
    """Whether what is no spec is one of our plans."""
    return isinstance(document, dict) and "plan_digest" in document and "model" not in document


def is_spec(document: object) -> bool:
    """Whether what is no plan is a spec."""
    return isinstance(document, dict) and "model" in document and "tables" not in document
