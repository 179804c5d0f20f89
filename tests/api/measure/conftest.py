"""Imports FBGEMM once, before warnings are errors: it uses what torch deprecates."""

import contextlib
import importlib
import warnings

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    warnings.simplefilter("ignore")
    importlib.import_module("fbgemm_gpu.split_table_batched_embeddings_ops_training")
