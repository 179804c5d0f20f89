"""Copies become numbers of a profile."""

import numpy as np
import pytest

from cost_models.fitting.copies import copy_rates
from cost_models.hardware.profile_fields import FIELDS
from cost_models.measurements.schema import Measurements, measurements


def copies(*kinds: tuple[str, float, int, float, float]) -> Measurements:
    """Operation, bytes of a row, copies at the same time, start and rate of each: eight sizes of each."""
    sizes = 2.0 ** np.arange(14, 30, 2)
    columns: dict[str, list[object]] = {key: [] for key in ("operation", "row_bytes", "contending", "copied_bytes")}
    columns["seconds"] = []
    for operation, row_bytes, contending, start, rate in kinds:
        columns["operation"] += [operation] * len(sizes)
        columns["row_bytes"] += [row_bytes] * len(sizes)
        columns["contending"] += [contending] * len(sizes)
        columns["copied_bytes"] += sizes.tolist()
        columns["seconds"] += (start + sizes / rate).tolist()
    rows = len(columns["seconds"])
    arrays = {key: np.array(values) for key, values in columns.items()}
    return measurements(arrays | {"kind": np.full(rows, "copy"), "launch": np.arange(rows)}, rows)


ROWS = copies(
    ("gather", 1024, 1, 1e-6, 3e12),
    ("gather", 1024, 8, 1e-6, 2e12),
    ("gather", 64, 8, 1e-6, 5e11),
    ("stream", np.nan, 8, 0, 2.5e12),
    ("host_to_device", np.nan, 1, 1e-5, 5e10),
    ("host_to_device", np.nan, 8, 1e-5, 2e10),
    ("device_to_host", np.nan, 8, 2e-5, 1.8e10),
)


def test_starts_and_rates_under_contention_are_recovered() -> None:
    found = copy_rates(ROWS)
    assert found == pytest.approx(
        {
            "hbm_bytes_per_second": 2e12,
            "hbm_stream_bytes_per_second": 2.5e12,
            "host_link_bytes_per_second": 2e10,
            "host_link_return_bytes_per_second": 1.8e10,
            "host_link_message_seconds": 2e-5,
        },
        rel=0.01,
    )
    assert set(found) <= set(FIELDS)


def test_without_a_device_the_memory_is_the_hosts() -> None:
    found = copy_rates(copies(("gather", 512, 2, 0, 1e10), ("stream", np.nan, 2, 0, 2e10)))
    assert found == pytest.approx({"ddr_bytes_per_second": 1e10, "ddr_stream_bytes_per_second": 2e10}, rel=0.01)
    assert set(found) <= set(FIELDS)


def test_narrow_rows_alone_report_no_rate() -> None:
    assert copy_rates(copies(("gather", 64, 1, 0, 1e10))) == {}


def test_no_copies_give_no_numbers_and_bad_ones_are_refused_by_launch() -> None:
    assert copy_rates(ROWS.take(np.zeros(ROWS.num_rows, bool))) == {}
    seconds = ROWS.numbers("seconds")
    seconds[5] = 0
    with pytest.raises(ValueError, match="launch 5: "):
        copy_rates(Measurements({**ROWS.columns, "seconds": seconds}))
