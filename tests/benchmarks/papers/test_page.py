"""The page of the studies of papers has the figures that were stored, and the picture is of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers import page
from examples.studies import compare


@pytest.fixture
def figures() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.FIGURES.read_bytes())
    return found


def test_the_page_has_the_stored_figures(root: Path, figures: dict[str, Any]) -> None:
    text = (root / "docs" / "paper-studies.md").read_text()
    assert page.page(text, figures) == text
    assert figures.keys() == compare.COMPARISONS.keys()
    for name, study in figures.items():
        assert page.table_of(study) in text, name


def test_the_picture_is_of_the_stored_figures(root: Path, figures: dict[str, Any]) -> None:
    assert (root / "docs" / "paper-studies.svg").read_text() == page.picture(figures)


def test_other_figures_change_page_and_picture(tmp_path: Path, root: Path, figures: dict[str, Any]) -> None:
    (tmp_path / "paper-studies.md").write_text((root / "docs" / "paper-studies.md").read_text())
    figures["neo"]["claims"][0]["ours"] = "123,456 K/s"
    figures["neo"]["rates"]["table_wise only"] *= 2
    (tmp_path / "figures.json").write_text(json.dumps(figures))
    assert page.main(["--figures", str(tmp_path / "figures.json"), "--docs", str(tmp_path)]) == 0
    assert "123,456 K/s" in (tmp_path / "paper-studies.md").read_text()
    svg = (tmp_path / "paper-studies.svg").read_text()
    assert svg != (root / "docs" / "paper-studies.svg").read_text()
    assert svg.count("<polyline") == 4
