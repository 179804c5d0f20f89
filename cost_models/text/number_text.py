"""Numbers as a person writes them: counts whole, all else with three significant digits, large ones in words."""

import math
from collections.abc import Sequence

_WORDS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
#: Whole numbers below this are written in full, and so are thousands of the others.
_IN_FULL = 10**7
_NO_WORD = 1e15
_SMALL = 1e-3


def number_text(value: float) -> str:
    """``"2,220"``, ``"7.67"``, ``"12,300"``, ``"153 million"``, ``"1.5e-05"``."""
    if float(value).is_integer() and abs(value) < _IN_FULL:
        return f"{value:,.0f}"
    rounded = float(f"{value:.3g}")
    size = abs(rounded)
    if size < _SMALL or size >= _NO_WORD:
        return f"{rounded:.3g}"
    if size < _IN_FULL:
        return f"{rounded:,.0f}" if size >= 1e3 else f"{rounded:g}"
    step, word = next((step, word) for step, word in _WORDS if size >= step)
    return f"{rounded / step:g} {word}"


def at_most_text(value: float) -> str:
    """The same of a limit > 0, which three digits do not round up."""
    if float(value).is_integer() and value < _IN_FULL:
        return number_text(value)
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return number_text(math.floor(value / step * (1 + 1e-12)) * step)


def digits_text(value: float) -> str:
    """``"80000000000"``, ``"0.15"``: as a spec has it, for programs too; no whole number has an exponent."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:g}"


def counted(number: int, singular: str, plural: str = "") -> str:
    """``"1 rank"``, ``"2 ranks"``."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def number_ranges(numbers: Sequence[int]) -> str:
    """``"0-3, 7"`` for 3, 0, 1, 2, 7: distinct numbers in order, runs of three or more folded."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(str(number) for number in run) for run in runs
    )
