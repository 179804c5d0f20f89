import pytest

from planner.domain.formats.units import format_bytes, format_seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_951, "1.0 MB"),
        (80e9, "80.0 GB"),
        (3.35e12, "3.4 TB"),
        (-2.5e9, "-2.5 GB"),
    ],
)
def test_bytes(value: float, text: str) -> None:
    assert format_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (2.5, "2.5 s"),
        (0.004071, "4.07 ms"),
        (1.25e-5, "12.5 us"),
        (9.996e-4, "1 ms"),
        (0.9994, "999 ms"),
        (-0.002, "-2 ms"),
        (3.1e-8, "0.031 us"),
        (9.996e-9, "0.01 us"),
        (1.89e-9, "1.89 ns"),
        (1.89e-10, "189 ps"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert format_seconds(value) == text
