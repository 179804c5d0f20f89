"""Files of the command line: specs and plans in, documents out."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer
from pydantic import ValidationError

from api.cli.errors import BadInput, echo, system_errors
from api.client.plan_file import write_atomically
from api.schemas.described import reader_of_any_version
from api.schemas.plan import PlanDocument as AcceptedPlan
from api.specs.input.changes import UnknownPlace, with_field
from api.specs.input.json import RejectedDocument, form_errors, form_issue, is_spec, read_json
from api.specs.plans.document import parse_form
from planner.domain.formats.canonical_json import canonical_bytes, plan_digest
from planner.domain.formats.compact_form import CHECKPOINT, RANKS, is_compact, long_parts, long_value
from planner.domain.formats.compaction import compact_document
from planner.errors import InvalidProblem, Issue
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.plan import LoadsDocument, PlanDocument

STDIN = "-"
#: Larger than the service takes; a file beyond it is no spec.
MAX_FILE_BYTES = 256 * 1024 * 1024


def read_bytes(path: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``; an empty one is reported by its name."""
    if path == STDIN:
        raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    else:
        with system_errors(f"cannot read {path}"), Path(path).open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise BadInput(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
    if not raw:
        raise BadInput(f"{'standard input' if path == STDIN else path} is empty")
    return raw


def check_output(output: str | None, *inputs: str) -> None:
    """Reject, before any work is done, an output that cannot be written, or that is one of the inputs."""
    if output is None or output == STDIN:
        return
    path = Path(output)
    if os.path.isdir(path):  # Path.is_dir raises where a name is too long, which is reported when it is written
        raise BadInput(f"{output} is a folder: name a file in it")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"there is no folder {path.parent}: make it first, or write to another one")
    for given in inputs:
        if given != STDIN and path.resolve() == Path(given).resolve():
            raise BadInput(f"the output {output} is the input file; write to another one")


def check_distinct(files: Iterable[tuple[str, str]], what: str) -> None:
    """Reject two files of one identity, whose contents (``what``, such as rows) would count twice."""
    known: dict[str, str] = {}
    for path, identity in files:
        if identity in known:
            raise BadInput(f"{path} is the same as {known[identity]}: its {what} would count twice")
        known[identity] = path


PlanForm = Literal["long", "compact"]
Form = Annotated[
    PlanForm, typer.Option("--form", help="Of the plan that is written: long lists every shard, compact groups them.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write the JSON where stdout is a terminal, too.")]


def on_terminal() -> bool:
    """Whether a person reads what goes to standard output: people get words, and programs JSON."""
    return sys.stdout.isatty()


def print_document(document: object, *, as_json: bool) -> bool:
    """Write JSON to standard output, as canonical bytes, unless a terminal is there and JSON was not asked for."""
    return print_content(canonical_bytes(document), as_json=as_json)


def print_content(content: bytes, *, as_json: bool) -> bool:
    """Write the bytes of a document, as ``print_document``; returns whether it did, else people get words."""
    is_written = as_json or not on_terminal()
    if is_written:
        write_content(content, STDIN)
    return is_written


def write_document(document: object, path: str | None) -> None:
    """Write canonical JSON to a file (whole or not at all), or to standard output."""
    write_content(canonical_bytes(document), path)


def write_content(content: bytes, path: str | None) -> None:
    """Write a document whose canonical bytes are known; where no file is named, a terminal gets a word on that."""
    write_parts([content], path)


def write_plan(plan: CompactPlanDocument, path: str | None, form: PlanForm) -> None:
    """Write a plan in one of its forms, as ``write_parts``; the long one is expanded while it is written."""
    write_parts(long_parts(plan) if form == "long" else [canonical_bytes(plan)], path)


def write_parts(parts: Iterable[bytes], path: str | None) -> None:
    """Write canonical bytes part by part, as ``write_content``."""
    if path is None and on_terminal():
        echo("shardplan: the JSON was not kept: -o FILE writes it, -o - shows it here")
        return
    if path is None or path == STDIN:
        sys.stdout.buffer.writelines(parts)
        sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()
        return
    with system_errors(f"cannot write {path}"):
        write_atomically(Path(path), parts)


def with_changes(raw: bytes, changes: Mapping[Sequence[str], object]) -> bytes:
    """A spec with fields replaced; ``changes`` maps paths such as ``("solver", "seed")`` to values.

    A spec that is not well formed is returned as it is, to be rejected: an option never hides a broken file.
    """
    from api.specs.parse import is_well_formed

    if not changes or not is_well_formed(raw):
        return raw
    document = json.loads(raw)
    try:
        for path, value in changes.items():
            document = with_field(document, path, value)
    except UnknownPlace as error:
        raise BadInput(str(error)) from None
    return json.dumps(document).encode()


def parse_assignment(text: str) -> tuple[tuple[str, ...], object]:
    """``"hardware.overrides.hbm_bytes=8e10"`` as a path and a value; a value that is no JSON is a text."""
    name, equals, value = text.partition("=")
    path = tuple(name.split("."))
    if not equals or not all(path):
        raise BadInput(f"--set takes FIELD=VALUE with a dotted field, such as solver.seed=1, not {text!r}")
    try:
        return path, json.loads(value)
    except ValueError:
        return path, value


def reject_swapped(spec: str, plan: str) -> None:
    """Reject a plan that was given as the spec, with a spec as the plan."""
    if STDIN not in (spec, plan) and "tables" in _keys(spec) and "model" in _keys(plan):
        raise BadInput(f"{spec} is a plan and {plan} is a spec: give the spec first, then the plan")


def reject_spec(path: str, raw: bytes) -> None:
    """Reject a spec in the place of a plan, of which every field would be reported as unknown."""
    if is_spec(read_json(raw)):
        raise BadInput(f"{path} is a spec, and a plan is asked for: `shardplan plan` makes one of it")


def _keys(path: str) -> set[str]:
    """The keys of a JSON object; none of anything else."""
    document = read_json(read_bytes(path))
    return set(document) if isinstance(document, dict) else set()


def read_plan(path: str) -> CompactPlanDocument:
    """Read a plan that shardplan wrote, in either form, and check its shape and its digest."""
    raw = read_bytes(path)
    content = read_json(raw)
    try:
        parse_form(raw, content)
    except InvalidProblem:
        reject_spec(path, raw)
        raise
    try:
        document = _compact(raw, content)
    except ValidationError as error:
        issues = [form_issue(detail, AcceptedPlan) for detail in form_errors(error, content)]
        hint = (
            "give a plan that shardplan wrote; `shardplan evaluate` judges others, and `shardplan import` converts them"
        )
        raise RejectedDocument([replace(issue, hint=hint) for issue in issues]) from None
    digest = plan_digest(content)
    if document["plan_digest"] != digest:
        message = f"the plan says {document['plan_digest']}, but its content has the digest {digest}"
        hint = "it was changed after it was made; plan again, or fetch it again"
        raise InvalidProblem((Issue(code="digest-mismatch", pointer="/plan_digest", message=message, hint=hint),))
    return document


def _compact(raw: bytes, content: Any) -> CompactPlanDocument:
    """Return the compact form of a plan of some version; raises ``ValidationError`` where it lacks what texts read."""
    if not is_compact(content):
        reader_of_any_version(PlanDocument).validate_json(raw)
        return cast("CompactPlanDocument", compact_document(content))
    reader_of_any_version(CompactPlanDocument).validate_json(raw)
    loads = {key: _rows(key, content.get(key)) for key in (RANKS, CHECKPOINT)}
    reader_of_any_version(LoadsDocument).validate_python({**content, **loads})
    return cast("CompactPlanDocument", content)


def _rows(key: str, value: object) -> object:
    """Return what stands by columns as the long form has it; raises ``RejectedDocument`` where they are none."""
    try:
        return long_value(key, value)
    except ValueError as error:
        hint = "take the compact form as shardplan wrote it, or give the long one"
        issue = Issue(code="invalid-value", pointer=f"/{key}", message=str(error), hint=hint)
        raise RejectedDocument([issue]) from None
