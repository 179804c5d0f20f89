"""Ctrl-C during a real solve: the best plan so far is written, and says that it was cut short."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

#: Before there is a plan; 1 where the interrupt came into the middle of an import.
NOTHING_YET = (130, 1, -signal.SIGINT)


def interrupted_after(seconds: float, command: list[str]) -> int:
    """Start a command, interrupt it, and return its exit code."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()


@thorough
def test_ctrl_c_keeps_the_best_plan(examples: Path, tmp_path: Path) -> None:
    output = tmp_path / "plan.json"
    # A gap of zero and ten minutes: nothing but the interrupt ends this solve.
    command = [str(Path(sys.executable).with_name("shardplan")), "plan", str(examples / "dlrm_dcnv2_8.json")]
    command += ["-o", str(output), "--time-limit", "600", "--gap", "0", "--set", "solver.reproducible=false"]
    codes = []
    for seconds in (6, 12, 24, 48):  # a busy machine may have no plan at the first interrupt
        codes.append(interrupted_after(seconds, command))
        if codes[-1] not in NOTHING_YET:
            break
    assert codes[-1] == 0, codes
    plan = json.loads(output.read_text())
    assert plan["termination"]["limit"] == "cancelled"
    assert len(plan["tables"]) == 26
