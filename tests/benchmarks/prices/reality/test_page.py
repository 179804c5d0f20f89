"""The page of figures is what its generator makes of the committed results."""

import json
from pathlib import Path

from benchmarks.prices.reality.page import PAGE, RESULTS, main, page_of


def test_the_page_is_made_of_the_committed_results() -> None:
    assert PAGE.read_text() == page_of(json.loads(RESULTS.read_text())), "run `make reality`"


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    group = {
        "group": "whole step",
        "rows": 3,
        "mean_relative_error": 0.05,
        "p90_relative_error": 0.1,
        "largest_relative_error": 0.2,
        "median_signed_error": -0.01,
    }
    results = {"groups": [group], "verdicts": ["X: close"], "plans": [], "left_out": []}
    (tmp_path / "r.json").write_text(json.dumps(results))
    main(["--results", str(tmp_path / "r.json"), "--page", str(tmp_path / "p.md")])
    page = (tmp_path / "p.md").read_text()
    assert "| whole step | 3 | 5.0% | 10.0% | 20.0% | 1.0% too fast |" in page
    assert "- X: close" in page
    assert "## Our plans" not in page
