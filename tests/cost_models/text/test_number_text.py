"""Numbers as a person writes them."""

import pytest

from cost_models.text.number_text import at_most_text, digits_text, number_text


@pytest.mark.parametrize(
    ("value", "text"), [(8e10, "80000000000"), (0.0, "0"), (20.0, "20"), (0.15, "0.15"), (1e-05, "1e-05")]
)
def test_digits_of_whole_numbers_are_all_reported(value: float, text: str) -> None:
    assert digits_text(value) == text
    assert float(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (4.0, "4"),
        (2220.0, "2,220"),
        (9_999_999.0, "9,999,999"),
        (10_000_000.0, "10 million"),
        (9_999_999.5, "10 million"),
        (7.66667, "7.67"),
        (0.0512345, "0.0512"),
        (999.96, "1,000"),
        (12_345.6, "12,300"),
        (152_999_999.0, "153 million"),
        (1.5e9, "1.5 billion"),
        (999_999_999_999.0, "1 trillion"),
        (4.2e12, "4.2 trillion"),
        (3e15, "3e+15"),
        (1.5e-5, "1.5e-05"),
        (-7.66667, "-7.67"),
    ],
)
def test_numbers_are_written_as_people_do(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (100.0, "100"),
        (7.669, "7.66"),
        (0.3, "0.3"),
        (1239.9, "1,230"),
        (2220.0, "2,220"),
        (152_999_999.5, "152 million"),
    ],
)
def test_limits_are_not_rounded_up(value: float, text: str) -> None:
    assert at_most_text(value) == text
