"""Rules of specs for the runtime ``sparsecore`` that need the number of chips."""

from collections.abc import Iterator

from api.json_input import quoted
from api.schemas.spec import SpecDocument
from planner.errors import Issue
from planner.runtimes.sparsecore import SparseCore
from planner.runtimes.sparsecore_geometry import is_power_of_two, padded
from planner.schemes.blocks import has_empty_block


def check_sparsecore(spec: SpecDocument, num_chips: int, base: str) -> Iterator[Issue]:
    """Yield what keeps rows from being dealt out to all chips; nothing for other runtimes."""
    if spec.runtime != SparseCore.name:
        return
    if num_chips < 2 or not is_power_of_two(num_chips):
        yield _rule(
            f"{base}/hardware/num_hosts",
            f"{num_chips} chips, and the runtime sparsecore deals rows out to a power of two, 2 or more",
            "use a power of two of hosts, or another ranks_per_host",
        )
        return
    for index, table in enumerate(spec.model.tables):
        if has_empty_block(table.num_embeddings, num_chips):
            yield _rule(
                f"{base}/model/tables/{index}/num_embeddings",
                f"the {table.num_embeddings} rows of table {quoted(table.name)} leave some of {num_chips} chips without"
                " any",
                f"plan for {padded(table.num_embeddings, num_chips)} rows: SparseCores pad tables to more than that",
            )


def _rule(where: str, message: str, hint: str) -> Issue:
    return Issue(code="invalid-value", pointer=where, message=message, hint=hint)
