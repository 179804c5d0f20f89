"""Cost models by name."""

import pytest

from cost_models.errors import UnknownCostModel
from cost_models.registry import cost_model_names, make_cost_model


def test_names_are_those_of_the_contract() -> None:
    assert set(cost_model_names()) == {"roofline", "serving", "torchrec"}


@pytest.mark.parametrize("name", cost_model_names())
def test_a_model_knows_its_name(name: str) -> None:
    assert make_cost_model(name).name == name


def test_unknown_names_raise_and_name_the_known() -> None:
    with pytest.raises(UnknownCostModel, match="known: roofline, torchrec, serving"):
        make_cost_model("crystal_ball")
