"""A solve on this machine, by the command ``shardplan`` of the full package: what is left where no service answers."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import PlanUnavailable

#: What the command takes in addition to its search: loading, reading, verifying, compiling the search once.
GRACE_SECONDS = 120.0
_DEFAULT_LIMIT_SECONDS = 60.0
_SHOWN_CHARACTERS = 2_000


def solve_locally(spec: Mapping[str, object], *, command: Sequence[str] = ("shardplan",)) -> bytes:
    """Plan a spec with ``shardplan plan`` on this machine, and return the bytes of the plan.

    Raises
    ------
    PlanUnavailable
        The command is not installed, or has no plan of this spec; with what it said.
    """
    environment_path = str(Path(sys.executable).parent)  # of an environment that is not activated
    program = shutil.which(command[0]) or shutil.which(command[0], path=environment_path)
    if program is None:
        raise PlanUnavailable(
            f"{command[0]} is not installed on this machine, so that nothing can be planned without the service:"
            " pip install shardplan"
        )
    with tempfile.TemporaryDirectory(prefix="shardplan-") as folder:
        spec_file, plan_file = Path(folder) / "spec.json", Path(folder) / "plan.json"
        spec_file.write_text(json.dumps(spec), encoding="utf-8")
        try:
            done = subprocess.run(
                [program, *command[1:], "plan", str(spec_file), "-o", str(plan_file), "--quiet"],
                capture_output=True,
                timeout=_limit_seconds(spec) + GRACE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise PlanUnavailable(f"{command[0]} had no plan after {error.timeout:g} s") from None
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace").strip()[-_SHOWN_CHARACTERS:]
            raise PlanUnavailable(f"{command[0]} has no plan (exit code {done.returncode}): {message}")
        return plan_file.read_bytes()


def _limit_seconds(spec: Mapping[str, object]) -> float:
    solver = spec.get("solver")
    limit = solver.get("time_limit_seconds") if isinstance(solver, Mapping) else None
    return float(limit) if isinstance(limit, int | float) else _DEFAULT_LIMIT_SECONDS
