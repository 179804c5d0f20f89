"""A live model, compared with a plan and with the spec that the plan was solved for."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from .check import content_differences, extent, ranks_per_group
from .hash_table_rules import hash_table_reasons
from .live_table import LiveTable, of_table, unique_names
from .plan_types import PlanDocument, TableDocument
from .rules import geometry_reasons, kernel_reasons, pod_reasons, pooling_reasons
from .verdicts import Difference, refuse, replan

#: Facts that a table of a spec has by default, as the service reads it. The type of the weights
#: is compared with the plan, since the planner may have chosen among several.
_SPEC_DEFAULTS = {"pooling": "sum", "is_weighted": False, "hash_table": None}
#: A table of a plan, and the table of the model that has its name.
Pair = tuple[TableDocument, LiveTable]


def pairs_by_path(document: PlanDocument, live: Sequence[LiveTable]) -> dict[str, list[Pair]]:
    """Return the tables that the plan and the model both have, by module path, in the model's order."""
    planned = {table["name"]: table for table in document["tables"]}
    by_path: dict[str, list[Pair]] = defaultdict(list)
    for table in live:
        if table.name in planned:
            by_path[table.module_path].append((planned[table.name], table))
    return dict(by_path)


def plan_differences(
    document: PlanDocument, live: Sequence[LiveTable], *, digest: str, world_size: int, ranks_per_host: int, device: str
) -> list[Difference]:
    """Return everything that speaks against a plan of the right shape for a model on so many ranks."""
    found = content_differences(document, digest=digest, world_size=world_size, ranks_per_host=ranks_per_host)
    return found + model_differences(document, live, device)


def model_differences(document: PlanDocument, live: Sequence[LiveTable], device: str) -> list[Difference]:
    """Compare a plan with a model, and report what TorchRec would refuse or train wrongly.

    The shards are judged for the cluster that the plan names, and only where the plan and the
    model mean the same table: a plan of an earlier model is out of date, not wrong.
    """
    planned = {table["name"] for table in document["tables"]}
    names = {table.name for table in live}
    found = [
        replan(f'table "{t.name}" of module "{t.module_path}" is not in the plan')
        for t in live
        if t.name not in planned
    ]
    found += [
        replan(f'table "{t["name"]}" of the plan is not in the model')
        for t in document["tables"]
        if t["name"] not in names
    ]
    for members in pairs_by_path(document, live).values():
        changes = [[replan(of_table(table, text)) for text in _changes(planned, table)] for planned, table in members]
        for (planned_table, table), changed in zip(members, changes, strict=True):
            wrong = geometry_reasons(planned_table, table, document["world_size"], ranks_per_group(document))
            wrong += kernel_reasons(planned_table, table, device)
            wrong += hash_table_reasons(planned_table, table, device)
            wrong += pod_reasons(planned_table, table, document["ranks_per_host"], ranks_per_group(document))
            wrong += _stash_reasons(planned_table, table)
            found += changed or [refuse(of_table(table, text)) for text in wrong]
        if not any(changes):
            found += [refuse(text) for text in pooling_reasons(members)]
    return found


def spec_differences(spec: Mapping[str, object], live: Sequence[LiveTable]) -> list[Difference]:
    """Compare a model with the spec that its plan was solved for; only what the spec says is compared.

    A spec has what a plan leaves out: the features, whether ids carry weights, the optimizer.
    """
    model = spec.get("model")
    listed = model.get("tables") if isinstance(model, Mapping) else None
    if not isinstance(listed, list) or not all(
        isinstance(t, Mapping) and isinstance(t.get("name"), str) for t in listed
    ):
        return [refuse("the spec has no list of named tables in model.tables")]
    keys = unique_names([(str(table.get("module_path") or ""), table["name"]) for table in listed])
    by_name = dict(zip(keys, listed, strict=True))
    names = {table.name for table in live}
    found = [f'table "{t.name}" is not in the spec' for t in live if t.name not in by_name]
    found += [f'table "{name}" of the spec is not in the model' for name in by_name if name not in names]
    for table in live:
        if table.name in by_name:
            stated = _stated(by_name[table.name], table)
            found += [
                of_table(table, f"{name} is {stated[name]} in the spec, {value} in the model")
                for name, value in asdict(table).items()
                if name != "name" and stated.get(name, value) != value and (value is not None or name == "hash_table")
            ]
    return [replan(text) for text in found]


def _changes(table: TableDocument, live: LiveTable) -> list[str]:
    """What the plan says of a table that is no longer so."""
    rows, columns = extent(table)
    pairs = [
        ("rows", rows, live.num_embeddings),
        ("columns", columns, live.embedding_dim),
        ("num_embeddings", table.get("num_embeddings", live.num_embeddings), live.num_embeddings),
        ("embedding_dim", table.get("embedding_dim", live.embedding_dim), live.embedding_dim),
        ("data_type", table.get("data_type", live.data_type), live.data_type),
        ("pooling", table.get("pooling", live.pooling), live.pooling),
        ("hash_table_mode", table.get("hash_table_mode", "none"), live.hash_table.mode if live.hash_table else "none"),
        ("module_path", table.get("module_path") or live.module_path, live.module_path),
    ]
    return [f"{name} is {mine} in the plan, {theirs} in the model" for name, mine, theirs in pairs if mine != theirs]


def _stash_reasons(table: TableDocument, live: LiveTable) -> list[str]:
    """What the model stashes and the plan does not, or the other way about: memory is planned for one of them."""
    planned = table.get("stash_weights") or False
    if planned == live.stash_weights:
        return []
    return [
        f"stash_weights is {planned} in the plan, {live.stash_weights} in the model; set stash_weights={planned} in the"
        " config of the table before the model is sharded"
    ]


def _stated(table: Mapping[str, object], live: LiveTable) -> dict[str, object]:
    """The facts that a table of a spec states, under the names of a live table's."""
    stated = _SPEC_DEFAULTS | {key: value for key, value in table.items() if value is not None and key != "data_type"}
    features = stated.pop("features", None)
    if isinstance(features, list) and all(isinstance(f, Mapping) and f.get("name") for f in features):
        stated["feature_names"] = tuple(feature["name"] for feature in features)
    hash_table = stated["hash_table"]
    if isinstance(hash_table, Mapping):
        capacity = hash_table.get("capacity")
        stated["num_embeddings"] = stated.get("num_embeddings") if capacity is None else capacity
        given = {name: value for name, value in hash_table.items() if value is not None and name != "capacity"}
        of_model = {} if live.hash_table is None else asdict(live.hash_table)
        stated["hash_table"] = of_model | {"eviction": "none"} | given  # what is not given may be anything
    return stated
