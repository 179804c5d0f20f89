"""Reshard maps of plans that the service keeps."""

import json
from typing import cast

from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.problem.problem import Problem
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.reshard.reshard_map import reads_of_rank, reshard_map


def reshard_bytes(old: bytes, new: bytes, problem: Problem | None, rank: int | None) -> bytes | None:
    """Return the map between two stored plans in compact form, or what one rank reads; ``None`` for no such rank.

    ``problem`` is what the new plan was made for, where its spec is stored: without it the map is of weights alone.

    Raises
    ------
    UnsupportedRequest
        The old plan does not say how many bytes its weights have.
    """
    before, after = (cast("CompactPlanDocument", json.loads(one)) for one in (old, new))
    if rank is not None and not 0 <= rank < after["world_size"]:
        return None
    optimizers = {} if problem is None else {table.name: table.optimizer for table in problem.tables}
    if rank is not None:
        return canonical_bytes(reads_of_rank(before, after, optimizers, rank))
    return canonical_bytes(reshard_map(before, after, optimizers).to_document())
