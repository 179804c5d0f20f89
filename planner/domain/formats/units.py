"""Bytes and seconds as people read them.

Everything else in the program holds plain bytes and SI seconds.
"""

GIGABYTE = 10**9

_BYTE_STEPS = ((10**12, "TB"), (GIGABYTE, "GB"), (10**6, "MB"), (10**3, "kB"))
_BYTES_ROUNDED_UP = 0.99995  # what one decimal would write as 1,000.0 of the next smaller unit


def format_bytes(num_bytes: float) -> str:
    """``"80.0 GB"``: one decimal in the largest decimal unit that keeps it above one, as data sheets have it."""
    for step, unit in _BYTE_STEPS:
        if abs(num_bytes) >= step * _BYTES_ROUNDED_UP:
            return f"{num_bytes / step:,.1f} {unit}"
    return f"{num_bytes:,.0f} B"


_SHOWN_FROM = {"us": 1e-8}  # 0.031 us compares with 12.5 us at a glance; 31 ns does not
_ROUNDED_UP = 0.9995  # what three digits would write as the next larger unit


def format_seconds(seconds: float) -> str:
    """``"4.07 ms"``: three significant digits in s, ms or us, and below 10 ns, as of a lookup, in ns or ps."""
    if seconds == 0:
        return "0 s"
    for step, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")):
        if abs(seconds) >= _SHOWN_FROM.get(unit, step) * _ROUNDED_UP:
            return f"{seconds / step:.3g} {unit}"
    return f"{seconds / 1e-12:.3g} ps"
