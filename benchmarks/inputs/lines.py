"""What every reader of other programs' text shares: a refusal that names the line."""


class InvalidLine(ValueError):
    """A line of a file that is read cannot be what it should be."""

    def __init__(self, line: int, reason: str) -> None:
        self.line, self.reason = line, reason
        super().__init__(f"line {line}: {reason}")
