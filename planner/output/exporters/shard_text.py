"""The shards of a plan document as canonical JSON, straight from their columns: a large plan has a million of them."""

from collections.abc import Iterable, Mapping

from cost_models.vocabulary import Tier
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.plan.shards import Shards

_EMPTY = b'"shards":[]'


def geometry_texts(shards: Shards) -> list[str]:
    """Return the fields of each shard that determine training, in canonical order, and the brace that closes it."""
    tiers = [f'"tier":"{label}"}}' for label in Tier.labels()]
    return [
        f'"column_offset":{column_offset},"num_columns":{num_columns},"num_rows":{num_rows},"rank":{rank},'
        f'"row_offset":{row_offset},{tiers[tier]}'
        for column_offset, num_columns, num_rows, rank, row_offset, tier in zip(
            shards.column_offset.tolist(),
            shards.num_columns.tolist(),
            shards.num_rows.tolist(),
            shards.rank.tolist(),
            shards.row_offset.tolist(),
            shards.tier.tolist(),
            strict=True,
        )
    ]


def bare_list(texts: Iterable[str]) -> bytes:
    """Return the list of shards as the digest covers it."""
    return ("[" + ",".join(["{" + text for text in texts]) + "]").encode()


def full_list(texts: Iterable[str], sizes: Iterable[int]) -> bytes:
    """Return the list of shards with the bytes of each."""
    return (
        "[" + ",".join([f'{{"bytes":{size},{text}' for size, text in zip(sizes, texts, strict=True)]) + "]"
    ).encode()


def filled_in(document: Mapping[str, object], shard_lists: Iterable[bytes]) -> bytes:
    """Return the canonical bytes of a document whose tables have empty lists of shards, with these in their place."""
    # In the strings of a JSON document quotes are escaped, so that only an empty list itself reads like one.
    first, *others = canonical_bytes(document).split(_EMPTY)
    parts = [first]
    for shard_list, after in zip(shard_lists, others, strict=True):
        parts += [_EMPTY[:-2], shard_list, after]
    return b"".join(parts)
