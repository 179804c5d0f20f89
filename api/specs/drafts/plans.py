"""Tables out of plans of TorchRec: their sizes follow from the shards, or are printed."""

from api.client.live_table import unique_names
from api.schemas.torchrec_plan import TorchRecPlan, TorchRecTable
from api.specs.drafts.draft import Draft, Table
from api.specs.input.json import RejectedDocument, parse_document, pointer
from api.specs.plans.printed_table import PrintedTable, read_printed_plan
from planner.errors import Issue


def draft_of_torchrec(raw: bytes) -> Draft:
    """Read the tables of a plan in TorchRec's form: each is as large as its shards together.

    Raises
    ------
    RejectedDocument
        The plan is malformed, or has a table without shards, whose size is not known.
    """
    given = parse_document(raw, TorchRecPlan)
    issues: list[Issue] = []
    found = [(path, name, one) for path, module in given.plan.items() for name, one in module.items()]
    tables: list[Table] = []
    for (path, name, one), unique in zip(found, unique_names([(p, n) for p, n, _ in found]), strict=True):
        if one.shards is None:
            issues.append(
                Issue(
                    code="missing-field",
                    pointer=pointer(("plan", path, name, "shards")),
                    message=f'table "{name}" is {one.sharding_type} and has no shards, so that its size is not known',
                    hint="make the spec of the model, with spec_from_model or from its Python file",
                )
            )
        else:
            tables.append({"name": unique, **_size(one), **({"module_path": path} if path else {})})
    if issues:
        raise RejectedDocument(issues)
    ranks = [rank for _, _, one in found for rank in one.ranks or ()]
    placed = [int(s.placement[5:].partition("/")[0]) for _, _, one in found for s in one.shards or ()]
    return Draft(
        form="plan of TorchRec",
        tables=tuple(tables),
        world_size=given.world_size or 1 + max([*ranks, *placed]),
        ranks_per_host=given.local_world_size,
    )


def _size(one: TorchRecTable) -> Table:
    ends = [
        [offset + size for offset, size in zip(shard.shard_offsets, shard.shard_sizes, strict=True)]
        for shard in one.shards or ()
    ]
    rows, columns = (max(end[axis] for end in ends) for axis in range(2))
    return {"num_embeddings": rows, "embedding_dim": columns}


def draft_of_print_out(text: str) -> Draft:
    """Read the tables that TorchRec's planner printed, with their pooling factors.

    Raises
    ------
    RejectedDocument
        There is no whole print-out, or a line cannot be read.
    """
    printed = read_printed_plan(text)
    paths = [(path, name) for path, _, name in (one.path.rpartition(".") for one in printed.tables)]
    names = unique_names(paths)
    tables = [
        _printed_table(one, path, name) for one, (path, _), name in zip(printed.tables, paths, names, strict=True)
    ]
    return Draft(
        form="print-out of TorchRec's planner",
        tables=tuple(tables),
        world_size=len(printed.rank_hbm_bytes),
        batch_size_per_rank=printed.batch_size,
    )


def _printed_table(one: PrintedTable, path: str, name: str) -> Table:
    table: Table = {"name": name, "num_embeddings": one.num_rows, "embedding_dim": one.num_columns}
    if path:
        table["module_path"] = path
    if one.is_sequence:
        table["pooling"] = "none"
    if one.is_weighted:
        table["is_weighted"] = True
    if one.sum_pooling_factor is not None:
        # The print-out has the sum over the features, and not their names.
        number = one.num_features
        features = [name] if number == 1 else [f"{name}.{index}" for index in range(number)]
        table["features"] = [
            {"name": feature, "pooling_factor": one.sum_pooling_factor / number} for feature in features
        ]
    return table
