"""``init``: makes a spec that validates, and says what to run next."""

import shlex
import sys
from typing import Annotated, get_args

import typer

from api.cli.completion import complete_optimizer
from api.cli.errors import BadInput, echo, print_issues
from api.cli.files import check_output
from api.cli.init.answers import Answers
from api.cli.init.assemble import assembled
from api.cli.init.questions import one_of
from api.cli.init.sources import holds_plan
from api.cli.plans.plan import Changes, Profile
from api.cli.plans.plan_files import check_named, write_named_spec
from api.cli.plans.spec_text import spec_text
from api.schemas.table import OptimizerName
from api.specs.parse import parse_spec


def init_command(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="CSV of tables, JSON of EmbeddingBagConfigs, a plan of TorchRec, a planner's log, FILE.py or"
            " MODULE:NAME of a model; - reads standard input.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="SPEC.json", help="Where to write the spec; else stdout, or NAME.spec.json."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    table: Annotated[
        list[str] | None, typer.Option(metavar="NAME=ROWSxCOLUMNS@IDS", help="A table, such as user=10Mx64@1.0.")
    ] = None,
    batch_size_per_rank: Annotated[int | None, typer.Option(min=1, help="Samples of one rank in one step.")] = None,
    profile: Profile = None,
    num_hosts: Annotated[int | None, typer.Option(min=1, help="Hosts of the cluster.")] = None,
    ranks_per_host: Annotated[int | None, typer.Option(min=1, help="Ranks used on each host.")] = None,
    pooling_factor: Annotated[
        list[str] | None,
        typer.Option(metavar="[FEATURE=]IDS", help="Mean ids per sample of a feature or table, or of all others."),
    ] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(autocompletion=complete_optimizer, help="Optimizer of the tables that state none."),
    ] = None,
    changes: Changes = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take the defaults; do not ask.")] = False,
) -> None:
    """Make a spec: from a file that has the tables, from options, or by questions on a terminal."""
    answers = Answers(
        source=source,
        name=name,
        tables=list(table or ()),
        batch_size_per_rank=batch_size_per_rank,
        profile=profile,
        num_hosts=num_hosts,
        ranks_per_host=ranks_per_host,
        pooling_factors=list(pooling_factor or ()),
        optimizer=optimizer,
        changes=tuple(changes or ()),
        output=output,
    )
    if source is not None and table:
        raise BadInput("give the tables in a file, or with --table")
    check_output(output, *(() if source is None else (source.partition(":")[0],)))
    check_named(output)
    if optimizer is not None:
        one_of(get_args(OptimizerName))(optimizer)
    is_asked = not yes and source != "-" and sys.stdin.isatty() and sys.stderr.isatty()
    try:
        content = assembled(answers, is_asked=is_asked)
    except KeyboardInterrupt:
        echo("\nshardplan: what was answered is in this command line:")
        print(f"  {answers.command()}", file=sys.stderr)  # whole, so that it can be pasted
        raise
    request = parse_spec(content)
    print_issues(request.warnings)
    path = write_named_spec(content, output, name=request.name)
    echo(spec_text(request))
    if path is not None:
        echo(f"next: {_next_command(path, source)}")


def _next_command(path: str, source: str | None) -> str:
    """Return the command that plans a spec, or that improves the plan out of which the spec was made."""
    has_plan = source is not None and holds_plan(source)
    words = ["improve", path, source] if has_plan else ["plan", path]
    return shlex.join(["shardplan", *map(str, words)])
