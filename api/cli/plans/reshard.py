"""``reshard``: which rank of a plan reads which bytes of a checkpoint of another plan."""

from typing import Annotated

import typer

from api.cli.errors import BadInput, echo
from api.cli.files import AsJson, check_output, print_document, read_plan, write_document
from api.cli.plans.plan import Changes, changed_spec
from api.cli.statistics.command import StatisticsFiles, found_statistics
from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.reshard import explain_reshard
from planner.output.reshard.reshard_map import Optimizers, reads_of_rank, reshard_map, shape_of


def reshard_command(
    old: Annotated[str, typer.Argument(metavar="OLD.json", help="The plan of the checkpoint.")],
    new: Annotated[str, typer.Argument(metavar="NEW.json", help="The plan of the job that reads it.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="MAP.json", help="Where to write the map, else stdout.")
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(metavar="SPEC.json", help="The spec of the new plan: it says which optimizers have which state."),
    ] = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Only what this rank of the new plan reads, read by read.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the reshard map: which rank of the new plan reads which bytes of which shard of the checkpoint."""
    check_output(output, old, new, *([] if spec is None else [spec]))
    before, after = read_plan(old), read_plan(new)
    if rank is not None and rank >= after["world_size"]:
        raise BadInput(f"{new} has ranks 0 to {after['world_size'] - 1}, and no rank {rank}")
    optimizers = {} if spec is None else _optimizers(spec, statistics, changes, after)
    found = None if rank is not None else reshard_map(before, after, optimizers)
    document = reads_of_rank(before, after, optimizers, rank or 0) if found is None else found.to_document()
    if output is None:
        print_document(document, as_json=as_json)
    else:
        write_document(document, output)
    if found is not None:
        echo(explain_reshard(found))


def _optimizers(spec: str, statistics: StatisticsFiles, changes: Changes, plan: CompactPlanDocument) -> Optimizers:
    request = parse_spec(changed_spec(spec, {}, changes), Library(find_statistics=found_statistics(statistics).get))
    if plan["spec_digest"] != request.spec_digest:
        echo(f"warning: the plan was made for the spec {plan['spec_digest']}, and {spec} is {request.spec_digest}")
    shapes = {table.name: (table.num_embeddings, table.embedding_dim) for table in request.problem.tables}
    others = [table["name"] for table in plan["tables"] if shapes.get(table["name"]) != shape_of(table)]
    if others:
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        raise BadInput(f"{spec} has no table of the name and shape of {others[0]}{more}: give the spec of the new plan")
    return {table.name: table.optimizer for table in request.problem.tables}
