"""Imports FBGEMM once, before warnings are errors: it uses what torch deprecates. Leaves the memory of tests alone."""

import contextlib
import importlib
import warnings
from importlib.util import find_spec

import pytest

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    warnings.simplefilter("ignore")
    importlib.import_module("fbgemm_gpu.split_table_batched_embeddings_ops_training")


@pytest.fixture(autouse=True)
def freed_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run tells the C library would hold for all later tests of this process."""
    if find_spec("torch") is not None:  # without it nothing is measured
        monkeypatch.setattr("api.cli.measuring.session.keep_freed_memory", lambda: True)
