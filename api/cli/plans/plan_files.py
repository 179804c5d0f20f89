"""Where a plan or a spec goes: to the file that was named, to a program that reads stdout, else to one of its name."""

import os
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path

from api.cli.errors import BadInput, echo, system_errors
from api.cli.files import STDIN, PlanForm, on_terminal, write_content, write_plan
from api.specs.input.json import read_json
from planner.output.documents.compact_plan import CompactPlanDocument

_PLAN_SUFFIX, _SPEC_SUFFIX = ".plan.json", ".spec.json"
_LONGEST_NAME = 100
#: A larger file is not read to see whether the same document is in it.
_LARGEST_COMPARED_BYTES = 64 * 1024**2


def check_named(output: str | None) -> None:
    """Reject, before any work, a folder that cannot take the document that a terminal does not show."""
    if output is None and on_terminal() and not os.access(os.curdir, os.W_OK):
        raise BadInput("this folder takes no files: name one elsewhere with -o")


def write_named_plan(plan: CompactPlanDocument, output: str | None, form: PlanForm, *, spec: str) -> None:
    """Write a plan; on a terminal without ``output`` to ``NAME.plan.json``, never over another plan.

    Parameters
    ----------
    spec
        The file of the spec, whose name the plan's file gets; ``-`` names it after the plan.
    """
    if output is not None or not on_terminal():
        write_plan(plan, output, form)
        return
    stem = plan["name"] if spec == STDIN else Path(spec).name.removesuffix(".json").removesuffix(".spec")
    path = _free_path(stem, _PLAN_SUFFIX, lambda content: content.get("plan_digest") == plan["plan_digest"])
    write_plan(plan, path, form)
    echo(f"shardplan: the plan is in {path}")


def write_named_spec(spec: bytes, output: str | None, *, name: str) -> str | None:
    """Write a spec; on a terminal without ``output`` to ``NAME.spec.json``, never over another spec.

    Returns the file, or ``None`` if a program reads the spec from standard output.
    """
    if output is None and on_terminal():
        document = read_json(spec)
        output = _free_path(name, _SPEC_SUFFIX, lambda content: content == document)
    write_content(spec.rstrip(b"\n"), output)
    return None if output == STDIN else output


def _free_path(stem: str, suffix: str, is_same: Callable[[dict[str, object]], bool]) -> str:
    """Return the first of ``STEM.plan.json``, ``STEM-2.plan.json``, ... that is free or has this very document."""
    name = re.sub(r"[^\w.-]+", "-", stem).strip("-.")[:_LONGEST_NAME] or "spec"
    for number in count(1):
        path = Path(f"{name}{suffix}" if number == 1 else f"{name}-{number}{suffix}")
        with system_errors(f"cannot write {path}"):
            if not os.path.lexists(path) or _has(path, is_same):
                return str(path)
    raise AssertionError("unreachable: numbers do not end")


def _has(path: Path, is_same: Callable[[dict[str, object]], bool]) -> bool:
    if not path.is_file() or path.stat().st_size > _LARGEST_COMPARED_BYTES:
        return False
    content = read_json(path.read_bytes())
    return isinstance(content, dict) and is_same(content)
