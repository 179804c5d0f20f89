"""``certify`` and ``check``: a proof of how good a plan is, and whether it proves it."""

import gzip
import json
from typing import Annotated, Any

import typer

from api.cli.errors import ExitCode, echo, print_issues
from api.cli.files import check_output, read_bytes, write_content
from api.cli.models.files import CostModelFile
from api.cli.plans.documents import Output
from api.cli.plans.given import PlanFile, given
from api.cli.plans.plan import Changes, CostModelName, SpecFile
from api.cli.statistics.command import StatisticsFiles
from api.services.plans.reports import certificate_of
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.formats.units import format_seconds
from planner.output.certificate.check import check

_GZIP_MAGIC = b"\x1f\x8b"


def certify_command(
    spec: SpecFile,
    plan_file: PlanFile,
    output: Output = None,
    cost_model: CostModelName = None,
    cost_model_file: CostModelFile = None,
    statistics: StatisticsFiles = None,
    changes: Changes = None,
) -> None:
    """Write the certificate of a plan: what it states, and dual data that prove how far it is from the best."""
    check_output(output, spec, plan_file)
    request, plan = given(spec, plan_file, cost_model, cost_model_file, statistics, changes)
    certificate = certificate_of(request, plan)
    content = canonical_bytes(certificate)
    compressed = output is not None and output.endswith(".gz")
    write_content(gzip.compress(content, mtime=0) if compressed else content, output)
    print_issues((*request.model_warnings, *plan.other_spec(request.stated_spec_digest, request.spec_digest)))
    _print_claim(request.name, certificate["claim"])


def check_command(
    certificate: Annotated[str, typer.Argument(metavar="CERT.json", help="A certificate, compressed or not.")],
    plan_file: Annotated[
        str | None, typer.Argument(metavar="PLAN.json", help="The plan that it must be of; else its own is checked.")
    ] = None,
) -> None:
    """Check a certificate as check_certificate.py does, which needs nothing of shardplan."""
    given = [_document(path) for path in (certificate, plan_file) if path is not None]
    try:
        claims = check(*given)
    except Exception as error:  # whatever is not as it must be proves nothing
        echo(f"REJECTED: {error if isinstance(error, ValueError) else f'this is no such document: {error!r}'}")
        raise typer.Exit(ExitCode.BAD_INPUT) from None
    echo(f"ACCEPTED: {claims}")


def _document(path: str) -> Any:
    raw = read_bytes(path)
    try:
        return json.loads(gzip.decompress(raw) if raw.startswith(_GZIP_MAGIC) else raw)
    except (ValueError, OSError, EOFError, RecursionError):
        return None  # which proves nothing


def _print_claim(name: str, claim: dict[str, Any]) -> None:
    echo(f"{name}: certificate")
    echo(f"  the plan takes   {format_seconds(claim['objective_seconds'])}")
    echo(f"  proven bound     {format_seconds(claim['bound_seconds'])}{_gap(claim['relative_gap'])}")
    own = claim["plan_objective"]["lower_bound_seconds"]
    if isinstance(own, int | float) and own > 0:
        echo(f"  the plan's own   {format_seconds(own)}{_gap(claim['objective_seconds'] / own - 1)}")


def _gap(gap: float | None) -> str:
    return "" if gap is None else f", gap {gap:.3%}"
