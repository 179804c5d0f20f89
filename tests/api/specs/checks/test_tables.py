"""Rules of single tables that need more than one field."""

import pytest

from api.specs.parse import parse_spec
from planner.errors import InvalidProblem
from tests.support.service.specs import raw, tiny


@pytest.mark.parametrize(("runtime", "types"), [("torchrec", "fp32 or fp16"), ("generic", "fp32 or fp16 or bf16")])
@pytest.mark.parametrize("field", ["data_type", "constraints__data_types"])
def test_only_types_that_the_runtime_looks_up_are_advised(runtime: str, types: str, field: str) -> None:
    value = "int8" if field == "data_type" else ["int8", "int4"]
    with pytest.raises(InvalidProblem) as caught:
        parse_spec(raw(tiny(runtime=runtime, **{f"model__tables__0__{field}": value})))
    (hint,) = (issue.hint for issue in caught.value.issues if "optimizer" in issue.hint)
    assert types in hint
    assert ("bf16" in hint) is (runtime == "generic")
