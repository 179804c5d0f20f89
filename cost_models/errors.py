"""What a cost model refuses, and why.

CostModelError
    MissingHardwareNumber    a profile lacks a number that the work needs
    UnknownProfile           no hardware profile of that id
    UnknownCostModel         no cost model of that name
    UnsupportedWork          the model has no formula for this scheme or kernel
    InvalidMeasurements      measured rows break rules of their schema
    InvalidModelFile         the file of a learned model is damaged, foreign or of another version
"""

from dataclasses import dataclass


class CostModelError(Exception):
    """Base of everything that a cost model raises on purpose."""

    code = "cost-model"
    hint = ""


class MissingHardwareNumber(CostModelError):
    """A number that the work needs is not in the hardware profile; it is never guessed."""

    code = "missing-hardware-number"

    def __init__(self, profile: str, name: str, needed_for: str) -> None:
        self.profile, self.name, self.needed_for = profile, name, needed_for
        super().__init__(f'hardware profile "{profile}" has no {name}, needed for {needed_for}')
        self.hint = f"give hardware.overrides.{name} or choose a profile that has it"


class UnknownProfile(CostModelError):
    """No hardware profile of that id."""

    code = "unknown-hardware-profile"

    def __init__(self, profile: str, known: tuple[str, ...]) -> None:
        self.profile, self.known = profile, known
        super().__init__(f"no hardware profile with this id; known: {', '.join(known)}")
        self.hint = 'use one of the known ids, or "custom" with every number in hardware.overrides'


class UnknownCostModel(CostModelError):
    """No cost model of that name."""

    code = "unknown-cost-model"

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known
        super().__init__(f"no cost model of this name; known: {', '.join(known)}")
        self.hint = "use one of the known names"


class UnsupportedWork(CostModelError):
    """The model has no formula for a scheme or kernel."""

    code = "unsupported-work"

    def __init__(self, model: str, what: str) -> None:
        self.model, self.what = model, what
        super().__init__(f'cost model "{model}" cannot price {what}')
        self.hint = "use another cost model, or constrain the table to kernels it can price"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowIssue:
    """One thing that is wrong with measured rows: where, what stands there, why it cannot be."""

    row: int  # from 0; -1 where it is about the whole file
    column: str  # "" where it is about the whole row
    value: str  # what stands there, cut short, without characters that a terminal obeys; "" where nothing does
    reason: str

    @property
    def pointer(self) -> str:
        """JSON pointer into a list of rows."""
        row = "" if self.row < 0 else f"/{self.row}"
        return f"{row}/{self.column}" if self.column else row


class InvalidMeasurements(CostModelError):
    """Measured rows break rules of their schema; the first of the findings, and how many there are in all."""

    code = "invalid-measurements"

    def __init__(self, issues: tuple[RowIssue, ...], num_issues: int) -> None:
        if not issues:
            raise ValueError("Expected at least one finding.")
        self.issues, self.num_issues = issues, num_issues
        first = issues[0]
        where = "" if first.row < 0 else f"row {first.row + 1}: "
        column = f"{first.column}: " if first.column else ""
        more = f" (and {num_issues - 1} more)" if num_issues > 1 else ""
        super().__init__(f"{where}{column}{first.reason}{more}")


class InvalidModelFile(CostModelError):
    """The file of a learned model is not what this version reads."""

    code = "invalid-model-file"

    def __init__(self, place: str, reason: str) -> None:
        self.place, self.reason = place, reason
        super().__init__(f"learned cost model: {place}: {reason}")
        self.hint = "fit the model again from its measurements with this version"
