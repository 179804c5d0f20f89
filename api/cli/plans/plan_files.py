"""Where a plan goes: to the file that was named, to a program that reads stdout, else to a file of its own name."""

import os
import re
from itertools import count
from pathlib import Path

from api.cli.errors import BadInput, echo, system_errors
from api.cli.files import STDIN, PlanForm, on_terminal, write_plan
from api.specs.input.json import read_json
from planner.output.documents.compact_plan import CompactPlanDocument

_SUFFIX = ".plan.json"
_LONGEST_NAME = 100
#: A larger file is not read to see whether the same plan is in it.
_LARGEST_COMPARED_BYTES = 64 * 1024**2


def check_named(output: str | None) -> None:
    """Reject, before any work, a folder that cannot take the plan that a terminal does not show."""
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
    stem = plan["name"] if spec == STDIN else Path(spec).stem
    name = re.sub(r"[^\w.-]+", "-", stem).strip("-.")[:_LONGEST_NAME] or "spec"
    path = _free_path(name, plan["plan_digest"])
    write_plan(plan, path, form)
    echo(f"shardplan: the plan is in {path}")


def _free_path(name: str, digest: str) -> str:
    """Return the first of ``NAME.plan.json``, ``NAME-2.plan.json``, ... that is free or has this very plan."""
    for number in count(1):
        path = Path(f"{name}{_SUFFIX}" if number == 1 else f"{name}-{number}{_SUFFIX}")
        with system_errors(f"cannot write {path}"):
            if not os.path.lexists(path) or _has_plan(path, digest):
                return str(path)
    raise AssertionError("unreachable: numbers do not end")


def _has_plan(path: Path, digest: str) -> bool:
    if not path.is_file() or path.stat().st_size > _LARGEST_COMPARED_BYTES:
        return False
    content = read_json(path.read_bytes())
    return isinstance(content, dict) and content.get("plan_digest") == digest
