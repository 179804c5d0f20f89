"""Imports TorchRec once, before warnings are errors: torch deprecates what TorchRec still uses."""

import contextlib
import importlib
import warnings

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    warnings.simplefilter("ignore")
    importlib.import_module("torch.distributed.optim")
    importlib.import_module("torchrec")
