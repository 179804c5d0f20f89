"""Access statistics as documents: sketches of tables, and what changed from one to another."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import Digest, Document, Moment, Name, StrictModel
from api.schemas.spec import MAX_TABLES
from planner.access.sketches.hot_rows import DEPTH, NUM_HOT_ROWS, WIDTH
from planner.access.sketches.positions import MOST_RANGES
from planner.access.sketches.sketch import MAX_LOOKUPS, MAX_ROW, MAX_SEED, NUM_LEVELS
from planner.access.sketches.windows import NUM_WINDOW_SIZES
from planner.domain.problem.access import NUM_REUSE_BINS

#: Largest sketch of one table. Unit: bytes of its canonical JSON.
MAX_SKETCH_BYTES = 65_536

Count = Annotated[int, Field(ge=0, le=MAX_LOOKUPS)]
Cell = Annotated[int, Field(ge=-MAX_LOOKUPS, le=MAX_LOOKUPS)]
Row = Annotated[int, Field(ge=0, le=MAX_ROW)]
Bins = Annotated[list[Count], Field(min_length=NUM_REUSE_BINS, max_length=NUM_REUSE_BINS)]
Packed = Annotated[str, Field(min_length=4, max_length=MAX_SKETCH_BYTES, pattern="^[A-Za-z0-9+/]*={0,2}$")]


class ReuseSketch(StrictModel):
    """Distinct rows of each batch, by their lookups in it: 1, 2, 3-4, 5-8, ..., 16385-32768, more."""

    rows: Bins = Field(description="Distinct rows, summed over batches. Unit: rows.")
    lookups: Bins = Field(description="Lookups of these rows; they sum to the lookups of the table.")


class ThinnedSketch(StrictModel):
    """A quarter of the batches of the level before, chosen by a hash of their content."""

    batches: Count = Field(description="Unit: batches.")
    lookups: Count = Field(description="Unit: lookups.")
    registers: Packed = Field(description="2^13 HyperLogLog registers of the rows looked up, base64.")


class HotRowsSketch(StrictModel):
    """The rows of which one batch made the most lookups."""

    rows: Annotated[list[Row], Field(max_length=NUM_HOT_ROWS)] = Field(description="Row numbers.")
    most_in_one_batch: Annotated[list[Count], Field(max_length=NUM_HOT_ROWS)] = Field(
        description="The most lookups that one batch made of each, falling. Unit: lookups."
    )
    cells: Annotated[
        list[Annotated[list[Cell], Field(min_length=WIDTH, max_length=WIDTH)]],
        Field(min_length=DEPTH, max_length=DEPTH),
    ] = Field(description="A count sketch of the lookups of every row.")


class PositionsSketch(StrictModel):
    """Lookups, and distinct rows of batches, by ranges of row numbers up to the largest row looked up.

    Ranges are equally long: the shortest power of two with which there are 512 or fewer.
    """

    lookups: Annotated[list[Count], Field(max_length=MOST_RANGES)] = Field(
        description="Lookups of each range; they sum to the lookups of the table."
    )
    rows: Annotated[list[Count], Field(max_length=MOST_RANGES)] = Field(
        description="Distinct rows of each batch in each range, summed over batches. Unit: rows."
    )


class TableSketchDocument(StrictModel):
    """All lookups of one table, in short; at most 64 KiB."""

    name: Name = Field(description="Name of the table.", examples=["cat_0"])
    samples: Count = Field(description="Unit: samples.")
    batches: Count = Field(description="Unit: batches.")
    lookups: Count = Field(description="Unit: lookups.")
    largest_row: Row | None = Field(default=None, description="Largest row number seen; null without lookups.")
    registers: Packed = Field(description="2^15 HyperLogLog registers of the rows looked up, base64.")
    reuse: ReuseSketch = Field(description="The reuse histogram, summed over batches.")
    thinned: Annotated[list[ThinnedSketch], Field(min_length=NUM_LEVELS, max_length=NUM_LEVELS)] = Field(
        description="How distinct rows grow with lookups."
    )
    windows: Annotated[
        list[Annotated[list[Count], Field(min_length=3, max_length=3)]],
        Field(min_length=NUM_WINDOW_SIZES, max_length=NUM_WINDOW_SIZES),
    ] = Field(description="Windows of lookups that follow each other, by size: their number, lookups, distinct rows.")
    hot_rows: HotRowsSketch = Field(description="The hottest rows.")
    positions: PositionsSketch | None = Field(
        default=None, description="Where in the range of rows the lookups are; null of sketches that lack it."
    )


class StatisticsDocument(StrictModel):
    """Access statistics of tables, as ``shardplan stats`` writes them."""

    schema_version: Literal[1] = Field(description="Version of this document.", examples=[1])
    statistics_digest: Digest = Field(description="Digest of everything else in the document.")
    hash_seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = Field(
        description="Seed of the hashes; statistics merge with those of the same seed.", examples=[0]
    )
    tables: Annotated[list[TableSketchDocument], Field(min_length=1, max_length=MAX_TABLES)] = Field(
        description="One sketch of each table, by name."
    )


class StatisticsSummary(Document):
    """Stored statistics, in short."""

    statistics_digest: str = Field(description="What access.statistics of a spec names.")
    statistics_url: str = Field(description="Where the statistics are.")
    num_tables: int = Field(description="Unit: tables.")
    num_lookups: int = Field(description="Of all tables. Unit: lookups.")
    created_at: Moment = Field(description="When they were stored.")


class StatisticsPage(Document):
    """A page of stored statistics, by digest."""

    statistics: list[StatisticsSummary]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")


class MissChangeDocument(Document):
    """What an LRU cache of one size misses, before and now."""

    cache_fraction: float = Field(description="Rows of the cache, as a share of the rows that were looked up before.")
    before: float = Field(description="Miss ratio before.")
    now: float = Field(description="Miss ratio now.")


class TableDriftDocument(Document):
    """What changed in the lookups of one table."""

    table: str = Field(description="Name of the table.", examples=["cat_0"])
    drifted: bool = Field(description="Whether something changed by more than its threshold.")
    reasons: list[str] = Field(description="What changed by more than its threshold, in words.")
    access_distance: float | None = Field(
        description="Largest difference of the two access CDFs; null where one has none."
    )
    lookups_per_sample_ratio: float | None = Field(description="Lookups of a sample, now to before.")
    distinct_rows_ratio: float | None = Field(
        description="Distinct rows of as many lookups as a batch had before, now to before."
    )
    misses: list[MissChangeDocument] = Field(description="Misses of caches of several sizes.")


class DriftDocument(Document):
    """What changed from one set of statistics to another; the tables that changed most come first."""

    before: list[str] = Field(description="Digests of the statistics before.")
    now: str = Field(description="Digest of the statistics now.")
    num_tables: int = Field(description="Tables that both have. Unit: tables.")
    num_drifted: int = Field(description="Tables that changed by more than a threshold. Unit: tables.")
    tables: list[TableDriftDocument]
    only_before: list[str] = Field(description="Tables that have no statistics any more.")
    only_now: list[str] = Field(description="Tables that had no statistics before.")
