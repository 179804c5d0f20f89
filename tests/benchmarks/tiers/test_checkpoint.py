"""What balance buys, on a problem that plans in a second."""

import json
from dataclasses import replace

import pytest

from api.specs.parse import parse_spec
from benchmarks.inputs.instances import meta_family
from benchmarks.tiers.checkpoint import compared, main
from tests.support.thorough import thorough

TINY = ["--tables", "12", "--ranks", "4", "--fill", "0.3", "--work", "0.3"]


@thorough
def test_two_lines_per_policy_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TINY, "--policy", "full", "consecutive"]) == 0
    head, *lines, summary = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["problem", "step"]
    assert [line.startswith("12 x 4, 30% full, full") for line in lines] == [True, True, False, False]
    assert [", balanced" in line for line in lines] == [False, True, False, True]
    # The name has 6 words, balanced 7; then 6 figures, and one more where there are increments.
    assert [len(line.split()) for line in lines] == [12, 13, 13, 14]
    assert summary.startswith("upload within 10% of the mean at less than 1% of step time: ")


def test_what_cannot_be_planned_is_none() -> None:
    spec = meta_family(num_tables=12, num_ranks=4, fill=0.3, seed=0)
    for table in spec["model"]["tables"]:
        table["constraints"] = {"compute_kernels": ["fused"]}
    request = parse_spec(json.dumps(spec).encode())
    full = replace(request.problem.cluster, hbm_bytes_by_rank=(1e6,) * 4)
    request = replace(request, problem=replace(request.problem, cluster=full))
    assert compared(request, "full", interval_seconds=60.0, between_failures=20.0, work_seconds=0.2) is None


def test_numbers_come_in_threes() -> None:
    with pytest.raises(SystemExit):
        main(["--tables", "3", "4", "--ranks", "2"])
