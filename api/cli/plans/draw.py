"""``draw``: the step of a plan as a picture."""

from typing import Annotated

import typer

from api.cli.errors import BadInput
from api.cli.files import check_output, read_plan, write_parts
from api.cli.plans.documents import PlanFile
from planner.output.drawing.step_picture import rank_to_draw, step_picture
from planner.output.explain.shard_groups import rank_loads
from planner.output.timeline.plan_timeline import plan_timeline

_MOST_DRAWN = 16


def draw_command(
    plan: PlanFile,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write the SVG; - is standard output.")
    ],
    rank: Annotated[
        list[int] | None,
        typer.Option(
            metavar="RANK",
            min=0,
            help="A rank to draw; repeat for more. By default the rank whose memory is fullest, or else the one"
            " that others wait for longest.",
        ),
    ] = None,
) -> None:
    """Draw what ranks do in a step, and what their memory holds meanwhile, as an SVG."""
    check_output(output, plan)
    document = read_plan(plan)
    loads = rank_loads(document)
    last = len(loads) - 1
    ranks = list(dict.fromkeys(rank or [rank_to_draw(document, loads)]))
    if unknown := [one for one in ranks if one > last]:
        raise BadInput(f"--rank {unknown[0]}: the ranks of this plan are 0 to {last}")
    if len(ranks) > _MOST_DRAWN:
        raise BadInput(f"{len(ranks)} ranks; a picture has room for {_MOST_DRAWN}")
    write_parts([step_picture(plan_timeline(document), loads, ranks).encode()], output)
