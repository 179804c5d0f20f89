"""The client and the planner call tables by the same names, which each works out by itself (decision 0007)."""

from hypothesis import given
from hypothesis import strategies as st

from api.client.live_table import unique_names as names_of_client
from planner.domain.problem.table_names import name_in_module
from planner.domain.problem.table_names import unique_names as names_of_planner
from tests.support.client.jobs import live_table

#: Few letters, so that names are shared, and names look like paths and like names with a path.
TEXTS = st.text(alphabet="ab./", max_size=4)
MODELS = st.lists(st.tuples(TEXTS, TEXTS.filter(bool)), max_size=8, unique=True)


@given(MODELS)
def test_both_make_the_same_names(model: list[tuple[str, str]]) -> None:
    assert names_of_client(model) == names_of_planner(model)


@given(MODELS)
def test_both_find_the_same_name_in_a_module(model: list[tuple[str, str]]) -> None:
    for (path, _), name in zip(model, names_of_planner(model), strict=True):
        assert live_table(name, module_path=path).name_in_module == name_in_module(path, name)


def test_models_with_shared_names_are_among_them() -> None:
    model = [("a", "t"), ("b", "t"), ("", "t"), ("a", "u")]
    assert names_of_planner(model) == ["a/t", "b/t", "t", "u"]
