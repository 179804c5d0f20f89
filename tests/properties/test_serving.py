"""What more cards, faster links and fewer samples may never do to the latency of a request."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.domain.problem.problem import Problem
from tests.properties.problems import is_at_most, optimum
from tests.support.planning.builders import make_table
from tests.support.planning.serving_problems import SERVING, cards, serving_problem

CAREFUL = settings(max_examples=25, derandomize=True, deadline=None, database=None)


@st.composite
def requests(draw: st.DrawFn) -> Problem:
    """One to three tables on one to three cards, with memory between too little and plenty."""
    made = [
        make_table(
            f"t{i}",
            draw(st.integers(1, 4000)),
            draw(st.sampled_from((4, 32, 64, 128))),
            pooling_factor=draw(st.sampled_from((0.0, 0.5, 3.0, 40.0))),
            pooling=draw(st.sampled_from(("sum", "none"))),
            data_type=draw(st.sampled_from(("fp16", "int8", "int4"))),
            optimizer="none",
        )
        for i in range(draw(st.integers(1, 3)))
    ]
    count = draw(st.integers(1, 3))
    held = sum(table.num_embeddings * (table.data_type.row_bytes(table.embedding_dim) + 16) for table in made)
    room = held / count * draw(st.floats(0.7, 4.0)) + 256 * 1024
    return serving_problem(*made, cluster=cards(count, hbm_bytes=room), samples=draw(st.sampled_from((1, 10, 60))))


def faster(problem: Problem, name: str, times: float) -> Problem:
    """The problem with one number of the hardware larger."""
    hardware = problem.cluster.hardware
    number = hardware.numbers[name]
    changed = {**hardware.numbers, name: replace(number, value=number.value * times)}
    return replace(problem, cluster=replace(problem.cluster, hardware=replace(hardware, numbers=changed)))


@CAREFUL
@given(requests())
def test_a_card_more_never_raises_the_latency(problem: Problem) -> None:
    more = replace(problem, cluster=replace(problem.cluster, ranks_per_host=problem.cluster.ranks_per_host + 1))
    assert is_at_most(optimum(more, SERVING), optimum(problem, SERVING))


@CAREFUL
@given(
    requests(),
    st.sampled_from(("host_link_bytes_per_second", "host_link_return_bytes_per_second", "hbm_bytes_per_second")),
    st.floats(1.0, 10.0),
)
def test_a_faster_link_or_memory_never_raises_the_latency(problem: Problem, name: str, times: float) -> None:
    assert is_at_most(optimum(faster(problem, name, times), SERVING), optimum(problem, SERVING))


@CAREFUL
@given(requests())
def test_a_sample_more_never_lowers_the_latency(problem: Problem) -> None:
    assert problem.serving is not None
    longer = replace(problem.serving, samples_per_request=problem.serving.samples_per_request + 1)
    assert is_at_most(optimum(problem, SERVING), optimum(replace(problem, serving=longer), SERVING))
