"""Numbers in texts: what people write, and nothing that only Python reads."""

import pytest

from cost_models.text.read_number import finite_number, whole_number

NO_NUMBERS = (
    "",
    " ",
    "1_000",
    "\uff11\uff10",
    "\u0661",
    "\u00b2",
    " 1",
    "1 ",
    "1\n",
    "--1",
    "0x10",
    "1,000",
    "nan",
    "inf",
    "-inf",
)


@pytest.mark.parametrize("text", [*NO_NUMBERS, "1.0", "1e3", "1" * 20, "1" * 5000])
def test_what_is_no_whole_number(text: str) -> None:
    assert whole_number(text) is None


@pytest.mark.parametrize("text", [*NO_NUMBERS, ".", "e3", "1e", "1e400", "-1e400", "1e99999", "1" * 5000])
def test_what_is_no_finite_number(text: str) -> None:
    assert finite_number(text) is None


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("-7", -7), ("+7", 7), ("007", 7), ("9" * 19, 10**19 - 1)])
def test_whole_numbers(text: str, number: int) -> None:
    assert whole_number(text) == number
    assert finite_number(text) == float(number)


@pytest.mark.parametrize(("text", "number"), [("1.5", 1.5), (".5", 0.5), ("2.", 2.0), ("-1e-3", -0.001), ("1E3", 1e3)])
def test_finite_numbers(text: str, number: float) -> None:
    assert finite_number(text) == number
