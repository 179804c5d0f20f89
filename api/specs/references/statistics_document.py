"""Statistics documents become sketches and back; whatever contradicts itself is refused with its place."""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from api.schemas.statistics import MAX_SKETCH_BYTES, StatisticsDocument, TableSketchDocument
from api.specs.input.json import RejectedDocument, parse_document, quoted
from planner.access.sketches.cardinality import Registers
from planner.access.sketches.positions import Positions
from planner.access.sketches.register_packing import pack, unpack
from planner.access.sketches.sketch import INDEX_BITS, THINNED_INDEX_BITS, OtherSketch, TableSketch, Thinned, merge
from planner.domain.formats.canonical_json import canonical_bytes, digest_of
from planner.errors import Issue

SCHEMA_VERSION = 1
_HINT = "merge or collect the statistics again; a sketch is not edited by hand"


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Sketches of tables with their digest. Equal sketches have equal digests, in whatever order they came."""

    sketches: Mapping[str, TableSketch]  # by name of the table
    #: canonical bytes of the sketch of each table, where they are known; else they are made when they are asked for
    packed: Mapping[str, bytes] = field(default_factory=dict, compare=False)

    @cached_property
    def document(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.canonical)
        return found

    @cached_property
    def digest(self) -> str:
        """Digest of everything but itself."""
        return digest_of(_canonical(self._hash_seed, self._tables))

    @cached_property
    def canonical(self) -> bytes:
        return _canonical(self._hash_seed, self._tables, self.digest)

    @property
    def _hash_seed(self) -> int:
        return next(iter(self.sketches.values())).hash_seed

    @cached_property
    def _tables(self) -> list[bytes]:
        return [
            self.packed.get(name) or canonical_bytes(_table_document(self.sketches[name]))
            for name in sorted(self.sketches)
        ]


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
    packed: dict[str, bytes] = {}
    for index, table in enumerate(document.tables):
        where = f"/tables/{index}"
        try:
            if table.name in sketches:
                raise ValueError("the table stands twice in the document")
            packed[table.name] = _packed(table)
            sketches[table.name] = _sketch(table, document.hash_seed)
        except ValueError as error:
            issues.append(_issue(where, f"table {quoted(table.name)}: {error}"))
    if not issues:
        found = Statistics(sketches=sketches, packed=packed)
        stated = document.statistics_digest
        if stated != found.digest:  # that of tables in order of their names
            actual = digest_of(_canonical(document.hash_seed, packed.values()))
            if stated != actual:
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


def _canonical(hash_seed: int, tables: Iterable[bytes], statistics_digest: str | None = None) -> bytes:
    """Return canonical bytes of a document, from those of its tables: keys sorted, no white space."""
    stated = b"" if statistics_digest is None else b',"statistics_digest":' + canonical_bytes(statistics_digest)
    head = b'{"hash_seed":%d,"schema_version":%d' % (hash_seed, SCHEMA_VERSION)
    return head + stated + b',"tables":[' + b",".join(tables) + b"]}"


def _packed(table: TableSketchDocument) -> bytes:
    """Return canonical bytes of a table; each sketch has one form only, so that these are of the sketch, too."""
    absent = {"positions"} if table.positions is None else None  # of sketches from before there were any
    content = canonical_bytes(table.model_dump(mode="json", exclude=absent))
    if len(content) > MAX_SKETCH_BYTES:  # registers that no real lookups give, almost equally frequent, pack badly
        raise ValueError(f"sketch of {len(content):,} bytes, {MAX_SKETCH_BYTES:,} at most")
    return content


def _table_document(sketch: TableSketch) -> dict[str, object]:
    positions = sketch.positions
    by_position = (
        {}
        if positions is None
        else {"positions": {"lookups": positions.lookups.tolist(), "rows": positions.rows.tolist()}}
    )
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
        **by_position,
    }


def _sketch(table: TableSketchDocument, hash_seed: int) -> TableSketch:
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
        positions=None
        if table.positions is None
        else Positions(
            lookups=np.array(table.positions.lookups, dtype=np.int64),
            rows=np.array(table.positions.rows, dtype=np.int64),
        ),
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
