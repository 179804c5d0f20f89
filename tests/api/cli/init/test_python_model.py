"""``init`` with Python: models, functions that return one, and configs of tables."""

from pathlib import Path

import pytest

from tests.support.cli.run import Run

pytest.importorskip("torchrec")
pytestmark = pytest.mark.torchrec

HEAD = """
import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
def config(name, rows):
    return EmbeddingBagConfig(name=name, num_embeddings=rows, embedding_dim=64, feature_names=[f"f_{name}"])
print("printed by the model")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, text: str) -> None:
    (folder / "model.py").write_text(HEAD + text)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("tables = [config('a', 10**9), config('b', 20)]", "model.py"),
        ("a = config('a', 10**9)\nb = config('b', 20)", "model.py"),
        ("one = {'a': config('a', 10**9), 'b': config('b', 20)}\ntwo = [config('c', 1)]", "model.py:one"),
        ("def make():\n    return [config('a', 10**9), config('b', 20)]", "model.py:make"),
        ("ebc = EmbeddingBagCollection(tables=[config('a', 10**9), config('b', 20)], device='meta')", "model.py"),
    ],
)
def test_tables_are_found_without_their_weights(run: Run, folder: Path, text: str, source: str) -> None:
    write(folder, text)
    answer = run("init", source, "--pooling-factor", "f_b=3", "--pooling-factor", "1", "--optimizer", "adagrad")
    assert answer.code == 0, answer.err
    assert answer.document["name"] == "model"
    tables = answer.document["model"]["tables"]
    assert [(table["name"], table["num_embeddings"], table["optimizer"]) for table in tables] == [
        ("a", 10**9, "adagrad"),
        ("b", 20, "adagrad"),
    ]
    assert [table["features"][0]["pooling_factor"] for table in tables] == [1.0, 3.0]
    assert "printed by the model" in answer.err


def test_a_model_has_paths_and_a_dense_part(run: Run, folder: Path) -> None:
    write(
        folder,
        "class Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.ebc = EmbeddingBagCollection(tables=[config('a', 10)], device='meta')\n"
        "        self.over = torch.nn.Linear(10, 10)\n",
    )
    answer = run("init", "model.py:Model")
    assert answer.code == 0, answer.err
    assert answer.document["model"]["tables"][0]["module_path"] == "ebc"
    assert answer.document["model"]["dense"] == {"parameter_bytes": 4 * 110}


@pytest.mark.parametrize(
    ("text", "source", "reported"),
    [
        ("x = 1 / 0", "model.py", "model.py, line 7: ZeroDivisionError"),
        ("raise SystemExit(3)", "model.py", "SystemExit: 3"),
        ("one = [config('a', 1)]\ntwo = [config('b', 1)]", "model.py", "name one, among model.py:one, model.py:two"),
        ("", "model.py", "has no model and no EmbeddingBagConfigs"),
        ("", "model.py:none", "model.py has no none"),
        ("number = 3", "model.py:number", "is of the type int, and neither a model nor a list"),
        ("two = [config('a', 1), config('a', 2)]", "model.py", "Duplicate"),
        ("m = torch.nn.Linear(1, 1)", "model.py:m", "the model has no EmbeddingBagCollection"),
        ("import torch_of_another_name", "model.py", "ModuleNotFoundError"),
    ],
)
def test_what_has_no_tables_is_refused_with_the_line(
    run: Run, folder: Path, text: str, source: str, reported: str
) -> None:
    write(folder, text + "\n")
    answer = run("init", source)
    assert (answer.code, answer.out) == (1, "")
    assert reported in answer.err
