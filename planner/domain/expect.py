"""How values of the domain reject numbers that cannot be."""


def expect(holds: bool, what: str) -> None:
    """Raise ``ValueError`` that says ``what`` was expected, unless it holds."""
    if not holds:
        raise ValueError(f"Expected {what}.")
