"""Statistics documents become sketches and back; whatever contradicts itself is refused with its place."""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from api.json_input import RejectedDocument, parse_document, quoted
from api.schemas.statistics import MAX_SKETCH_BYTES, StatisticsDocument, TableSketchDocument
from planner.canonical import canonical_bytes, digest
from planner.errors import Issue
from planner.statistics.cardinality import Registers
from planner.statistics.register_packing import pack, unpack
from planner.statistics.sketch import INDEX_BITS, THINNED_INDEX_BITS, OtherSketch, TableSketch, Thinned, merge

SCHEMA_VERSION = 1
_HINT = "merge or collect the statistics again; a sketch is not edited by hand"


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Sketches of tables with their digest. Equal sketches have equal digests, in whatever order they came."""

    sketches: Mapping[str, TableSketch]  # by name of the table

    @cached_property
    def document(self) -> dict[str, object]:
        """The document, with its digest."""
        content: dict[str, object] = {
            "schema_version": SCHEMA_VERSION,
            "hash_seed": next(iter(self.sketches.values())).hash_seed,
            "tables": [_table_document(self.sketches[name]) for name in sorted(self.sketches)],
        }
        return {**content, "statistics_digest": digest(content)}

    @property
    def digest(self) -> str:
        """Digest of everything but itself."""
        return str(self.document["statistics_digest"])

    @cached_property
    def canonical(self) -> bytes:
        """Canonical bytes of the document."""
        return canonical_bytes(self.document)


def parse_statistics(raw: bytes) -> Statistics:
    """Check a statistics document.

    Raises
    ------
    RejectedDocument
        With the place and the reason: another version, sums that are wrong, bytes that are no registers,
        sketches that are too large, tables that stand twice, a digest of something else.
    """
    document = parse_document(raw, StatisticsDocument)
    issues: list[Issue] = []
    sketches: dict[str, TableSketch] = {}
    for index, table in enumerate(document.tables):
        where = f"/tables/{index}"
        try:
            if table.name in sketches:
                raise ValueError("the table stands twice in the document")
            sketches[table.name] = _sketch(table, document.hash_seed)
        except ValueError as error:
            issues.append(_issue(where, f"table {quoted(table.name)}: {error}"))
    if not issues:
        content = {key: value for key, value in json.loads(raw).items() if key != "statistics_digest"}
        stated, actual = document.statistics_digest, digest(content)
        found = Statistics(sketches=sketches)
        if stated not in (actual, found.digest):
            message = f"the document says {stated}, but its content has the digest {actual}"
            issues.append(_issue("/statistics_digest", message, code="digest-mismatch"))
    if issues:
        raise RejectedDocument(issues)
    return found


def merge_statistics(parts: Iterable[Statistics]) -> Statistics:
    """Return the statistics of the batches of all parts, which have none in common; raises ``OtherSketch``."""
    merged: dict[str, TableSketch] = {}
    for part in parts:
        for name, sketch in part.sketches.items():
            seeds = {sketch.hash_seed, *(known.hash_seed for known in merged.values())}
            if len(seeds) > 1:
                raise OtherSketch(f"sketches were made with the hash seeds {', '.join(map(str, sorted(seeds)))}")
            merged[name] = merge(merged[name], sketch) if name in merged else sketch
    return Statistics(sketches=merged)


def _table_document(sketch: TableSketch) -> dict[str, object]:
    return {
        "name": sketch.table,
        "samples": sketch.samples,
        "batches": sketch.batches,
        "lookups": sketch.lookups,
        "largest_row": sketch.largest_row,
        "registers": _text(sketch.registers),
        "reuse": {"rows": sketch.reuse_rows.tolist(), "lookups": sketch.reuse_lookups.tolist()},
        "thinned": [
            {"batches": level.batches, "lookups": level.lookups, "registers": _text(level.registers)}
            for level in sketch.thinned
        ],
        "windows": sketch.windows.tolist(),
        "hot_rows": {
            "rows": sketch.hot_rows.tolist(),
            "most_in_one_batch": sketch.hot_most.tolist(),
            "cells": sketch.cells.tolist(),
        },
    }


def _sketch(table: TableSketchDocument, hash_seed: int) -> TableSketch:
    num_bytes = len(canonical_bytes(table.model_dump(mode="json")))
    if num_bytes > MAX_SKETCH_BYTES:  # registers that nobody's lookups give, almost equally frequent, pack badly
        raise ValueError(f"sketch of {num_bytes:,} bytes, {MAX_SKETCH_BYTES:,} at most")
    return TableSketch(
        table=table.name,
        hash_seed=hash_seed,
        samples=table.samples,
        batches=table.batches,
        lookups=table.lookups,
        largest_row=table.largest_row,
        reuse_rows=np.array(table.reuse.rows, dtype=np.int64),
        reuse_lookups=np.array(table.reuse.lookups, dtype=np.int64),
        registers=_registers(table.registers, INDEX_BITS),
        thinned=tuple(
            Thinned(
                batches=level.batches,
                lookups=level.lookups,
                registers=_registers(level.registers, THINNED_INDEX_BITS),
            )
            for level in table.thinned
        ),
        hot_rows=np.array(table.hot_rows.rows, dtype=np.int64),
        hot_most=np.array(table.hot_rows.most_in_one_batch, dtype=np.int64),
        cells=np.array(table.hot_rows.cells, dtype=np.int64),
        windows=np.array(table.windows, dtype=np.int64),
    )


def _text(registers: Registers) -> str:
    return base64.b64encode(pack(registers)).decode()


def _registers(text: str, index_bits: int) -> Registers:
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("registers are not base64") from None
    if base64.b64encode(content).decode() != text:
        raise ValueError("registers are not base64 in its shortest form")
    return unpack(content, 2**index_bits)


def _issue(where: str, message: str, *, code: str = "invalid-value") -> Issue:
    return Issue(code=code, pointer=where, message=message, hint=_HINT)
