"""Numbers out of texts that people and other programs wrote, and nothing that only Python takes for a number.

``int`` and ``float`` also read underscores between digits, digits of all scripts, blanks around, ``nan`` and ``inf``,
and make infinity of ``1e400``. In a text of a user these are another thing than the number, or a slip.
"""

import math
import re

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")


def whole_number(text: str) -> int | None:
    """Return the whole number of at most 19 digits that a text is, or ``None``."""
    return int(text) if _WHOLE.fullmatch(text) else None


def finite_number(text: str) -> float | None:
    """Return the finite decimal number that a text is, or ``None``."""
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None
