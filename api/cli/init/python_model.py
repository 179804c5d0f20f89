"""Tables out of Python: a module or a file that has a model, or the configs of its tables.

The code is run as the model's own programs run it, with PyTorch's default device set to meta, which holds no weights.
What it prints goes to standard error: standard output is for the spec.
"""

import contextlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from api.cli.errors import BadInput
from api.specs.drafts.draft import Draft
from planner.errors import InvalidProblem, Issue

_LOADED_AS = "shardplan_model"
_SHOWN_NAMES = 10


@dataclass(frozen=True, slots=True)
class LiveModel:
    """A model of PyTorch whose embedding modules are TorchRec's."""

    module: Any  # torch.nn.Module
    tables: Sequence[Any]  # api.client.live_table.LiveTable
    facts: Draft | None = None

    @property
    def form(self) -> str:
        return f"{type(self.module).__name__} in Python"

    @property
    def num_tables(self) -> int:
        return len(self.tables)

    @property
    def features_without_ids(self) -> Sequence[str]:
        return [name for table in self.tables for name in table.feature_names]

    @property
    def has_all_optimizers(self) -> bool:
        return all(table.optimizer is not None for table in self.tables)

    def model(
        self, pooling_factors: Mapping[str, float], default: float | None, optimizer: str | None
    ) -> dict[str, object]:
        from api.client.torchrec import spec_from_model

        with _reasons_as_issues():
            spec: dict[str, Any] = spec_from_model(
                self.module,
                batch_size_per_rank=1,
                hardware={},
                pooling_factors=dict(pooling_factors),
                default_pooling_factor=default,
                optimizer=optimizer,
            )
        return {key: value for key, value in spec["model"].items() if key != "batch_size_per_rank"}


def model_of_python(source: str) -> LiveModel:
    """Run a Python file or module, and return its model.

    Raises
    ------
    BadInput
        PyTorch or TorchRec is not installed, the code fails, or it has no model, or several.
    InvalidProblem
        The model has modules that cannot be planned; every one is listed.
    """
    place, _, name = source.partition(":")
    try:
        import torch

        from api.client.torchrec import live_tables
    except ImportError as error:
        message = f"reading a model from Python needs torch and torchrec: {error}; run this where the model itself runs"
        raise BadInput(message) from error
    with contextlib.redirect_stdout(sys.stderr), torch.device("meta"), _failures_of(place):
        loaded = _load(place)
        found = _named(loaded, name, place) if name else _only_model(loaded, place)
        if callable(found) and not isinstance(found, torch.nn.Module):
            found = found()
    module = _module_of(found, source)
    with _reasons_as_issues():
        return LiveModel(module, live_tables(module))


def _load(place: str) -> ModuleType:
    """Run a file, with its folder on the path as Python does for a program; or import a module."""
    if not place.endswith(".py"):
        sys.path.insert(0, "")
        return importlib.import_module(place)
    path = Path(place)
    if not path.is_file():
        raise BadInput(f"cannot read {place}: no such file")
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(_LOADED_AS, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"cannot read {place}: it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_LOADED_AS] = module  # which pickling and dataclasses look up
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _failures_of(place: str) -> Iterator[None]:
    """Raise ``BadInput`` with the line of the user's code at which it failed."""
    try:
        yield
    except BadInput:
        raise
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(place)]
        where = f"{place}, line {lines[-1]}" if lines else place
        raise BadInput(f"{where}: {type(error).__name__}: {error}") from error


def _named(module: ModuleType, name: str, place: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        raise BadInput(f"{place} has no {name}") from None


def _only_model(module: ModuleType, place: str) -> Any:
    """Return the one model at the top of a module, or else all of its configs."""
    from torch import nn
    from torchrec.modules.embedding_configs import BaseEmbeddingConfig

    names = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    models = {name: value for name, value in names.items() if isinstance(value, nn.Module) and _has_tables(value)}
    lists = {name: value for name, value in names.items() if _is_configs(value)}
    for found in (models, lists):
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            shown = ", ".join(f"{place}:{name}" for name in list(found)[:_SHOWN_NAMES])
            raise BadInput(f"{place} has {len(found)} models: name one, among {shown}")
    configs = [value for value in names.values() if isinstance(value, BaseEmbeddingConfig)]
    if configs:
        return configs
    raise BadInput(
        f"{place} has no model and no EmbeddingBagConfigs at its top level; name a function without arguments that"
        f" returns one, as {place}:NAME"
    )


def _has_tables(module: Any) -> bool:
    from torchrec.modules.embedding_modules import EmbeddingBagCollectionInterface, EmbeddingCollectionInterface

    kinds = (EmbeddingBagCollectionInterface, EmbeddingCollectionInterface)
    return any(isinstance(inner, kinds) for inner in module.modules())


def _is_configs(value: object) -> bool:
    from torchrec.modules.embedding_configs import BaseEmbeddingConfig

    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(v, BaseEmbeddingConfig) for v in value)


def _module_of(found: Any, source: str) -> Any:
    """Return a model, or the collection that configs describe, on the meta device."""
    import torch
    from torchrec.modules.embedding_configs import BaseEmbeddingConfig, EmbeddingBagConfig, EmbeddingConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection

    if isinstance(found, torch.nn.Module):
        return found
    if isinstance(found, BaseEmbeddingConfig):
        found = [found]
    if _is_configs(found):
        configs = list(found.values()) if isinstance(found, dict) else list(found)
        device = torch.device("meta")
        try:
            if all(isinstance(one, EmbeddingBagConfig) for one in configs):
                return EmbeddingBagCollection(tables=configs, device=device)
            if all(isinstance(one, EmbeddingConfig) for one in configs):
                return EmbeddingCollection(tables=configs, device=device)
        except ValueError as error:  # of two tables of one name, for example
            raise BadInput(f"{source}: {error}") from error
        raise BadInput(f"{source} mixes EmbeddingBagConfigs with EmbeddingConfigs: name one list of them")
    raise BadInput(
        f"{source} is of the type {type(found).__name__}, and neither a model nor a list of EmbeddingBagConfigs"
    )


@contextlib.contextmanager
def _reasons_as_issues() -> Iterator[None]:
    """Raise ``InvalidProblem`` with every reason why a model cannot be described."""
    from api.client import UnsupportedModel

    try:
        yield
    except UnsupportedModel as error:
        hint = "correct the model, or describe its tables in a CSV or as JSON"
        issues = [Issue(code="unsupported-model", pointer="", message=reason, hint=hint) for reason in error.reasons]
        raise InvalidProblem(tuple(issues)) from None
