"""Models of the package were fitted to the rows that are kept next to the benchmarks."""

import json
import re

import pytest

from api.schemas.base import MODEL_NAME
from cost_models.fitting.model import rows_digest
from cost_models.learned.document.file import parse_model
from cost_models.learned.shipped import shipped_models
from cost_models.measurements.files import read_measurements
from cost_models.measurements.schema import joined
from planner.domain.formats.canonical_json import canonical_bytes
from tests.support.paths import ROOT
from tests.support.thorough import thorough

MEASURED = ROOT / "benchmarks" / "measured"


@thorough
@pytest.mark.parametrize("name", shipped_models())
def test_rows_of_a_shipped_model_are_preserved(name: str) -> None:
    model = parse_model(shipped_models()[name])
    rows = joined([read_measurements(path) for path in sorted((MEASURED / name).glob("*.csv.gz"))])
    assert model.trained_on["rows_digest"] == rows_digest(rows)


@pytest.mark.parametrize("name", shipped_models())
def test_a_shipped_model_is_canonical_and_named_like_its_file(name: str) -> None:
    """So that a service keeps it under this name, as an upload of it would be."""
    content = shipped_models()[name]
    assert canonical_bytes(json.loads(content)) == content
    assert parse_model(content).name == name
    assert re.fullmatch(MODEL_NAME, name)


def test_there_is_a_model_of_a_cpu() -> None:
    assert "EPYC" in parse_model(shipped_models()["cpu-epyc"]).device
