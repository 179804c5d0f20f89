"""Turns measured copies into numbers of a hardware profile: what a spec states under ``hardware.overrides``.

Every kind of copy takes a start and a time per byte, ``seconds = start + bytes / rate``, fitted by least relative
deviations with both >= 0. Where several ranks copied at the same time over the same memory or link, the number is
the rate of a rank while as many as were measured do: a training step has all ranks gather and copy together.
"""

import numpy as np

from cost_models.arrays import Floats
from cost_models.fitting.non_negative import fit_non_negative
from cost_models.measurements.schema import Measurements

#: Rows of so many bytes count as wide: gathers of them set a profile's gather rate
#: (cost_models.hardware.profile_fields).
WIDE_ROW_BYTES = 512.0
_LINKS = {"host_to_device": "host_link_bytes_per_second", "device_to_host": "host_link_return_bytes_per_second"}


def copy_rates(rows: Measurements) -> dict[str, float]:
    """Fit the ``copy`` rows of one machine: numbers by the names and in the units of hardware profiles.

    Gathers and streams ran in an accelerator's memory where copies between host and device were measured too, else in
    the host's. Without rows of copies there are no numbers.

    Raises
    ------
    ValueError
        A row lacks its bytes or seconds; the text names its launch.
    """
    rows = rows.take(np.flatnonzero(rows.text("kind") == "copy"))
    copied, seconds = rows.numbers("copied_bytes"), rows.numbers("seconds")
    bad = ~(np.isfinite(copied) & (copied > 0) & np.isfinite(seconds) & (seconds > 0))
    if np.any(bad):
        raise ValueError(f"launch {rows.counts('launch')[bad][0]}: expected copied_bytes and seconds > 0")
    operation, contending = rows.text("operation"), np.maximum(rows.counts("contending"), 1)
    wide = (operation != "gather") | (rows.numbers("row_bytes") >= WIDE_ROW_BYTES)
    memory = "hbm" if np.any(np.isin(operation, list(_LINKS))) else "ddr"
    names = {"gather": f"{memory}_bytes_per_second", "stream": f"{memory}_stream_bytes_per_second", **_LINKS}
    numbers: dict[str, float] = {}
    starts: list[float] = []
    for kind, name in names.items():
        here = (operation == kind) & wide
        if not np.any(here):
            continue
        here &= contending == contending[here].max()
        start, numbers[name] = _line(copied[here], seconds[here])
        if kind in _LINKS:
            starts.append(start)
    if starts:
        numbers["host_link_message_seconds"] = max(starts)
    return numbers


def _line(copied: Floats, seconds: Floats) -> tuple[float, float]:
    """Start in seconds, and bytes per second once started."""
    start, per_byte = fit_non_negative(np.stack([np.ones_like(copied), copied], axis=1), seconds)
    # Copies of about one size do not separate a start from a rate: all of it is rate then.
    if per_byte * copied.max() < start:
        return 0.0, float(np.median(copied / seconds))
    return float(start), float(1 / per_byte)
