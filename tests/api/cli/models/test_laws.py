"""``shardplan fit --laws``: from logs of nccl-tests to a spec that is priced by them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.specs.parse import parse_spec
from cost_models.hardware.profiles_loader import load_profile
from tests.api.cli.models.test_fit import run
from tests.support.cost_models.laws import domain_law
from tests.support.service.specs import tiny

HEAD = """# Collective test starting: alltoall_perf
# nThread 1 nGpus 1 minBytes 512 maxBytes 1073741824
{devices}#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
"""


def log(path: Path, *, operation: str = "alltoall", dent: float = 1.0, powers: range = range(9, 31)) -> Path:
    """Write a log of 8 ranks on one host, whose times are those of the law of the tests."""
    law, lines = domain_law(), []
    for power in powers:
        size = 2**power
        seconds = law.start_seconds(8) + size * float(law.pace(np.array([float(size)]), 8)[0])
        seconds *= dent if power == 20 else 1.0
        rate = size / seconds / 1e9
        way = f"{seconds * 1e6:.2f} {rate:.2f} {rate * 7 / 8:.2f} 0"
        lines.append(f"{size} {size // 32} float none -1 {way} {way}")
    devices = "".join(f"#  Rank  {r} Group  0 Pid  1 on node-1 device  {r} [0x0{r}] NVIDIA H100\n" for r in range(8))
    text = HEAD.format(devices=devices).replace("alltoall", operation) + "\n".join(lines) + "\n"
    path.write_text(text)
    return path


def test_logs_become_laws_that_a_spec_is_priced_by(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "fit", log(tmp_path / "a.log"), "--laws", tmp_path / "laws.json")
    assert (code, out) == (0, "")
    assert "all_to_all in a domain: 44 rows of 8 ranks; start 1" in " ".join(err.split())
    assert max(len(line) for line in err.splitlines() if str(tmp_path) not in line) <= 80
    laws = json.loads((tmp_path / "laws.json").read_text())
    spec: dict[str, Any] = tiny()
    spec["hardware"] = {"profile": "dgx-h100-80g", "collective_laws": laws}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    loaded = parse_spec((tmp_path / "spec.json").read_bytes())
    reported = {one.subject: one.value for one in loaded.assumptions}
    assert reported["hardware.all_to_all_law"] == "44 rows of 8 to 8 ranks, nccl-tests"
    assert "XLA" not in reported["hardware.all_gather_law"]
    hardware = loaded.problem.cluster.hardware
    assert hardware.domain_laws["all_to_all"].start_seconds(8) == pytest.approx(17e-6, rel=0.05)
    assert hardware.domain_laws["all_gather"] == load_profile("dgx-h100-80g").domain_laws["all_gather"]


def test_single_steps_that_fall_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "fit", log(tmp_path / "a.log", dent=3.0), "--laws", tmp_path / "laws.json")
    assert code == 0
    assert "not monotone: all_to_all of 8 ranks, nccl-tests: 1 of 21 steps fall by more than 20%" in " ".join(
        err.split()
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operation": "all_reduce"}, "whose busbw / algbw among 8 ranks is 1.75; the log has busbw / algbw 0.87"),
        ({"powers": range(9, 12)}, "--laws: all_to_all: 3 sizes of messages do not show start and bandwidth; 4 do"),
        ({"powers": range(9, 13)}, "messages up to 4,096 bytes are too small to show a bandwidth"),
    ],
)
def test_bad_logs_are_refused_with_the_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    code, _, err = run(capsys, "fit", log(tmp_path / "a.log", **changes), "--laws", tmp_path / "laws.json")
    assert code == 1
    assert message in " ".join(err.split())
    assert not (tmp_path / "laws.json").exists()


def test_domain_ranks_are_for_laws(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "fit", log(tmp_path / "a.log"), "--domain-ranks", "72")
    assert code == 1
    assert "--domain-ranks is for --laws" in err


def test_laws_of_a_spec_that_are_none_are_refused_with_place_and_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(capsys, "fit", log(tmp_path / "a.log"), "--laws", tmp_path / "laws.json", "-q")
    laws = json.loads((tmp_path / "laws.json").read_text())
    laws["domain"][0]["terms"][0]["seconds"] = -1e-6
    spec = tiny() | {"hardware": {"profile": "dgx-h100-80g", "collective_laws": laws}}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    code, _, err = run(capsys, "validate", tmp_path / "spec.json")
    assert code == 1
    assert "/hardware/collective_laws/domain/0" in err
    assert "expected seconds >= 0, not -1e-06" in " ".join(err.split())
