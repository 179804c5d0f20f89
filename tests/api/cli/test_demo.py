"""The demo, as `make demo` runs it: a real service, two plans, a channel each, every byte checked."""

import subprocess
import sys
from pathlib import Path

from tests.support.waiting import PATIENCE_SECONDS


def test_demo_passes(root: Path) -> None:
    result = subprocess.run(
        [sys.executable, "examples/demo.py"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("identical; then 304 Not Modified") == 2
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "Plan of mlperf-dlrm-dcnv2\n" in result.stdout
    assert "Plan of mlperf-dlrm-dcnv2-2x8\n" in result.stdout
    assert "Traceback" not in (root / ".demo" / "service.log").read_text()
