"""Of the plans that a search finds on its way the command line holds the last: each has millions of shards."""

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.cli.plans import found_plan
from api.specs.parse import parse_spec


class Found:
    """Stands for an answer, without the plan that a line of progress reads."""

    plan = None


def test_a_better_plan_takes_the_place_of_the_one_before(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = []

    def planned(_request: object, _assumptions: object, on_result: Callable[[Any], None]) -> None:
        plans = [Found() for _ in range(3)]
        held = [weakref.ref(one) for one in plans]
        while plans:
            on_result(plans.pop(0))
        alive.extend(one() is not None for one in held)
        raise ValueError("enough")

    monkeypatch.setattr(found_plan, "planned", planned)
    monkeypatch.setattr(found_plan, "compile_search", lambda: None)
    request = parse_spec((examples / "dlrm_small.json").read_bytes())
    with pytest.raises(ValueError, match="enough"):
        found_plan.write_found(request, None, "compact", spec="dlrm_small.json")
    assert alive == [False, False, True]
