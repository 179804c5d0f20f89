"""All ways to look up embeddings compute the same sums and the same updates."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'shardplan[train]'")

from api.cli.measuring.embeddings import (  # noqa: E402
    EPSILON,
    INITIAL_WEIGHT,
    LEARNING_RATE,
    EmbeddingBags,
    Embeddings,
    best_implementation,
    fbgemm_embeddings,
)
from api.cli.measuring.ids import draw_batches  # noqa: E402
from api.cli.measuring.lookup_design import LookupLaunch, TableDesign  # noqa: E402
from api.cli.measuring.lookups import measure_lookups  # noqa: E402
from api.cli.measuring.stopwatch import Stopwatch  # noqa: E402
from cost_models.measurements.json_rows import rows_from_json  # noqa: E402

TABLES = tuple(
    TableDesign(name=f"t{i}", rows=rows, columns=columns, pooling=3.0, alpha=0.5, seed=i)
    for i, (rows, columns) in enumerate([(50, 4), (7, 24), (1_000, 12)])
)
SAMPLES, WIDTH = 16, 40


def step(embeddings: Embeddings, seed: int) -> Any:
    """One step of training on drawn ids: the sums before it."""
    generator = torch.Generator().manual_seed(seed)
    batches = [draw_batches(table, SAMPLES, 3, "cpu")[seed] for table in TABLES]
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), torch.cat([batch.lengths for batch in batches]).cumsum(0)])
    output = embeddings(torch.cat([batch.ids for batch in batches]), offsets)
    output.backward(torch.randn(SAMPLES, WIDTH, generator=generator))
    return output.detach()


def test_one_row_by_hand() -> None:
    """Sample 0 looks row 2 up twice, sample 1 once: its gradient is 2 g0 + g1."""
    table = TableDesign(name="t", rows=5, columns=2, pooling=1.0, alpha=0.0, seed=0)
    bags = EmbeddingBags([table], "fp32", "cpu")
    output = bags(torch.tensor([2, 2, 2]), torch.tensor([0, 2, 3]))
    assert output.flatten().tolist() == pytest.approx([2 * INITIAL_WEIGHT] * 2 + [INITIAL_WEIGHT] * 2)
    output.backward(torch.tensor([[1.0, 2.0], [1.0, -4.0]]))
    gradient, state = (3.0, 0.0), (3.0**2 + 0.0**2) / 2
    expected = [INITIAL_WEIGHT - LEARNING_RATE * g / (state**0.5 + EPSILON) for g in gradient]
    assert bags.weights[0][2].tolist() == pytest.approx(expected)
    assert bags.weights[0][1].tolist() == pytest.approx([INITIAL_WEIGHT] * 2)


def test_fbgemm_does_the_same() -> None:
    pytest.importorskip("fbgemm_gpu", reason="fbgemm_gpu is not installed")
    ours, theirs = EmbeddingBags(TABLES, "fp32", "cpu"), fbgemm_embeddings(TABLES, "fp32", "cpu")
    for seed in range(3):
        torch.testing.assert_close(step(theirs, seed), step(ours, seed))


@pytest.mark.parametrize("data_type", ["fp32", "fp16"])
def test_rows_of_a_launch_are_sound(data_type: Any) -> None:
    launch = LookupLaunch(task="seed0-round0", batch=SAMPLES, data_type=data_type, tables=TABLES)
    implementation = best_implementation()
    (found,) = measure_lookups([launch], implementation, "cpu", Stopwatch("cpu"), lambda: None)
    rows = rows_from_json([{**row, "launch": 0, "device": "this one"} for row in found])
    assert rows.text("table").tolist() == ["t0", "t1", "t2"]
    assert set(rows.text("implementation")) == {implementation.name}
    assert set(rows.numbers("element_bytes")) == {2.0 if data_type == "fp16" else 4.0}
    assert (rows.counts("repeats") >= 5).all()
    assert len(set(rows.numbers("seconds"))) == 1
    assert (rows.numbers("spread_seconds") >= 0).all()


def test_launches_take_turns() -> None:
    """Visits to one launch lie between visits to the others."""
    visited: list[int] = []
    implementation = best_implementation()
    numbers = itertools.count(1)

    def build(tables: Sequence[TableDesign], data_type: Any, device: str) -> Embeddings:
        number, embeddings = next(numbers), implementation.build(tables, data_type, device)

        def noted(ids: Any, offsets: Any) -> Any:
            visited.append(number)
            return embeddings(ids, offsets)

        return noted

    launches = [LookupLaunch(task=f"seed0-round{i}", batch=SAMPLES, data_type="fp32", tables=TABLES) for i in (1, 2)]
    heard: list[int] = []
    found = measure_lookups(
        launches,
        replace(implementation, build=build),
        "cpu",
        Stopwatch("cpu"),
        lambda: heard.append(len(visited)),
    )
    assert [rows[0]["task"] for rows in found] == ["seed0-round1", "seed0-round2"]
    turns = [number for number, before in zip(visited, [0, *visited], strict=False) if number != before]
    assert turns == [1, 2] * 9  # a warm-up of each, then eight visits
    assert len(set(heard)) == len(heard) == 18  # each of them was told as it ended
