"""Batches of measured rows as documents that are kept by digest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cost_models.measurements.json_rows import rows_from_json, rows_to_json
from cost_models.measurements.schema import Measurements
from planner.domain.formats.canonical_json import canonical_bytes, digest_of

SCHEMA_VERSION = 1
BENCHMARK, JOB = "benchmark", "job"


@dataclass(frozen=True, kw_only=True)
class MeasuredBatch:
    """Checked rows and where they are from. Equal ones have equal digests."""

    rows: Measurements
    source: str  # BENCHMARK or JOB
    facts: Mapping[str, object]  # of a job: the plan that it ran, its steps, and its seconds as they were sent

    @cached_property
    def canonical(self) -> bytes:
        return canonical_bytes(
            {"schema_version": SCHEMA_VERSION, "source": self.source, **self.facts, "rows": rows_to_json(self.rows)}
        )

    @cached_property
    def digest(self) -> str:
        return digest_of(self.canonical)

    @property
    def device(self) -> str:
        """The device of all rows; ``""`` where they are of several, or there are none."""
        devices = np.unique(self.rows.text("device"))
        return str(devices[0]) if len(devices) == 1 else ""


def rows_of(canonical: bytes) -> Measurements:
    """Return the rows of a document that was kept."""
    document: dict[str, Any] = json.loads(canonical)
    return rows_from_json(document["rows"])
