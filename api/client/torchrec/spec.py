"""From a live model to the spec that is submitted: no table is typed by hand."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from ..errors import UnsupportedModel
from ..live_table import LiveTable
from ..plan_types import SCHEMA_VERSION
from .model import dense_parameters, live_tables


def spec_from_model(
    module: nn.Module,
    *,
    batch_size_per_rank: int,
    hardware: Mapping[str, object],
    pooling_factors: Mapping[str, float] | Mapping[tuple[str, str], float] | None = None,
    default_pooling_factor: float | None = None,
    optimizer: str | None = None,
    name: str = "",
    access: Mapping[str, Mapping[str, object]] | None = None,
    constraints: Mapping[str, Mapping[str, object]] | None = None,
) -> dict[str, object]:
    """Describe the tables of a model as a spec of the service.

    Parameters
    ----------
    module
        The model as it will be given to ``DistributedModelParallel``; meta device is fine.
    batch_size_per_rank
        Samples per rank and step.
    hardware
        The spec's ``hardware`` object: profile, num_hosts, ranks_per_host, overrides.
    pooling_factors
        Mean ids per sample, by feature name, by table name for all features of a table, or by table and feature. A
        model does not know them, and no other number decides as much.
    default_pooling_factor
        For the features that ``pooling_factors`` leaves out; without it they are an error.
    optimizer
        For tables without ``apply_optimizer_in_backward``; it must agree where there is one.
    name
        The spec's name; left out where empty, which leaves it to the service.
    access, constraints
        The spec's ``access`` and ``constraints`` objects, by table name, or by ``MODULE_PATH/NAME`` if several modules
        have a table of the name.

    Returns
    -------
    dict
        A spec; add ``objective``, ``solver`` and the like as needed.

    Raises
    ------
    UnsupportedModel
        With every reason: modules that cannot be planned, pooling factors or optimizers that
        are missing, names that no table or feature has.
    """
    access, constraints = access or {}, constraints or {}
    factors: Mapping[Any, float] = pooling_factors or {}
    tables = live_tables(module)
    table_names = {name for table in tables for name in (table.name, table.name_in_module)}
    known: set[str | tuple[str, str]] = {
        *table_names,
        *(feature for table in tables for feature in table.feature_names),
    }
    known |= {
        (name, one) for table in tables for name in (table.name, table.name_in_module) for one in table.feature_names
    }
    reasons = [
        f'pooling_factors: no feature or table is named "{key}"' for key in sorted(map(str, factors.keys() - known))
    ]
    reasons += [f'access: no table is named "{key}"' for key in sorted(access.keys() - table_names)]
    reasons += [f'constraints: no table is named "{key}"' for key in sorted(constraints.keys() - table_names)]
    documents = []
    for table in tables:
        document = _table_document(table, factors, default_pooling_factor, optimizer, reasons)
        for field, given in (("access", access), ("constraints", constraints)):
            stated = given.get(table.name, given.get(table.name_in_module))
            if stated is not None:
                document[field] = dict(stated)
        documents.append(document)
    if reasons:
        raise UnsupportedModel(reasons)
    return {
        "schema_version": SCHEMA_VERSION,
        **({"name": name} if name else {}),
        "model": {
            "batch_size_per_rank": batch_size_per_rank,
            "tables": documents,
            "dense": {"parameter_bytes": sum(p.numel() * p.element_size() for p in dense_parameters(module))},
        },
        "hardware": dict(hardware),
        "runtime": "torchrec",
    }


def _table_document(
    table: LiveTable,
    factors: Mapping[Any, float],
    default_factor: float | None,
    optimizer: str | None,
    reasons: list[str],
) -> dict[str, object]:
    features = []
    for feature in table.feature_names:
        keys = ((table.name, feature), (table.name_in_module, feature), feature, table.name, table.name_in_module)
        factor = next((factors[key] for key in keys if key in factors), default_factor)
        if factor is None:
            reasons.append(
                f'feature "{feature}" of table "{table.name}" has no pooling factor; give it in pooling_factors,'
                " or give default_pooling_factor"
            )
        else:
            features.append({"name": feature, "pooling_factor": float(factor)})
    chosen = table.optimizer or optimizer
    if chosen is None:
        reasons.append(f'table "{table.name}" has no optimizer in its backward pass; give optimizer')
    elif optimizer is not None and chosen != optimizer:
        reasons.append(f'table "{table.name}" has the optimizer {chosen} in its backward pass, not {optimizer}')
    document: dict[str, object] = {
        "name": table.name_in_module,
        "num_embeddings": table.num_embeddings,
        "embedding_dim": table.embedding_dim,
        "data_type": table.data_type,
        "pooling": table.pooling,
        "is_weighted": table.is_weighted,
        "optimizer": chosen,
        "features": features,
        **({} if table.hash_table is None else {"hash_table": table.hash_table.spec()}),
    }
    if table.module_path:
        document["module_path"] = table.module_path
    return document
