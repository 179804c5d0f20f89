"""``draw`` writes a picture of a step, and says which ranks there are."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.api.cli.test_cli import spec
from tests.support.cli.run import Run


@pytest.fixture
def plan_file(run: Run, tmp_path: Path) -> Path:
    (tmp_path / "spec.json").write_text(json.dumps(spec()))
    assert run("plan", tmp_path / "spec.json", "-o", tmp_path / "plan.json", "--quiet").code == 0
    return tmp_path / "plan.json"


def test_a_picture_of_each_rank_that_is_asked_for(run: Run, plan_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "step.svg"
    assert run("draw", plan_file, "-o", output, "--rank", "1", "--rank", "0").code == 0
    texts = [str(one.text) for one in ElementTree.fromstring(output.read_text()).iter() if one.tag.endswith("text")]
    assert [text for text in texts if text.startswith("rank ")] == ["rank 1 on host 0", "rank 0 on host 0"]
    assert run("draw", plan_file, "-o", output).code == 0
    assert output.read_text().count(" on host ") == 1


def test_a_rank_that_is_not_there(run: Run, plan_file: Path, tmp_path: Path) -> None:
    ranks = len(json.loads(plan_file.read_text())["ranks"])
    refused = run("draw", plan_file, "-o", tmp_path / "step.svg", "--rank", str(ranks))
    assert refused.code == 1
    assert f"--rank {ranks}: the ranks of this plan are 0 to {ranks - 1}" in refused.err


def test_a_trace_shows_sharding_types_with_the_spec_of_the_plan_alone(
    run: Run, plan_file: Path, tmp_path: Path
) -> None:
    def kinds(*more: str) -> set[str]:
        output = tmp_path / "trace.json"
        assert run("export", plan_file, "--format", "chrome_trace", "-o", output, *more).code == 0
        return {event.get("cat", "") for event in json.loads(output.read_text())["traceEvents"]}

    spec_file = str(tmp_path / "spec.json")
    assert "sharding_type" in kinds("--spec", spec_file)
    assert "sharding_type" not in kinds()
    refused = run(
        "export", plan_file, "--format", "chrome_trace", "--spec", spec_file, "--set", "model.batch_size_per_rank=7"
    )
    assert refused.code == 1
    assert "its prices say nothing of this plan" in refused.err
