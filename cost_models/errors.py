"""What a cost model refuses, and why.

CostModelError
    MissingHardwareNumber    a profile lacks a number that the work needs
    UnknownProfile           no hardware profile of that id
    UnknownCostModel         no cost model of that name
    UnsupportedWork          the model has no formula for this scheme or kernel
"""


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
