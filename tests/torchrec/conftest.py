"""Imports TorchRec once, before warnings are errors: torch deprecates what TorchRec still uses."""

import contextlib
import importlib
import os
import warnings
from pathlib import Path

import pytest

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    warnings.simplefilter("ignore")
    importlib.import_module("torch.distributed.optim")
    importlib.import_module("torchrec")
    importlib.import_module("torchrec.modules.hash_mc_modules")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory, root: Path) -> dict[str, str]:
    """Of examples that are run as users run them: ``shardplan_client`` is the client of this tree."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "shardplan_client").symlink_to(root / "api" / "client")
    return os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
