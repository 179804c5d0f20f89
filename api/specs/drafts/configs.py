"""Tables out of JSON: objects with the fields of TorchRec's ``EmbeddingBagConfig``, or with those of a spec's table.

References
----------
meta-pytorch/torchrec, ``torchrec/modules/embedding_configs.py``: ``BaseEmbeddingConfig``, ``EmbeddingBagConfig``.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, cast

from pydantic import Field, JsonValue

from api.schemas.base import ModulePath, Name, StrictModel
from api.schemas.spec import MAX_TABLES
from api.schemas.table import MAX_FEATURES_OF_TABLE, FeatureSpec, OptimizerName, PoolingFactor
from api.specs.drafts.draft import Draft, Table
from api.specs.input.json import RejectedDocument, parse_document, read_json
from planner.errors import Issue

#: Fields of ``EmbeddingBagConfig`` that are no matter of placement.
_OF_THE_RUNTIME = (
    "weight_init_max",
    "weight_init_min",
    "num_embeddings_post_pruning",
    "init_fn",
    "need_pos",
    "input_dim",
    "total_num_buckets",
    "virtual_table_eviction_policy",
    "enable_embedding_update",
)
_ENUMS = ("DataType.", "PoolingType.")
_TypeText = Annotated[str, Field(max_length=40, pattern=r"^[A-Za-z0-9_.]+$")]
_LIST, _TABLES = b'{"tables": ', "/tables"


class _Config(StrictModel):
    """One table."""

    listed: ClassVar[str] = "in docs/cli.md, under init"

    name: Name
    num_embeddings: Annotated[int, Field(ge=1, le=2**40)]
    embedding_dim: Annotated[int, Field(ge=1, le=2**14)]
    feature_names: Annotated[list[Name], Field(max_length=MAX_FEATURES_OF_TABLE)] | None = None
    features: Annotated[list[FeatureSpec], Field(min_length=1, max_length=MAX_FEATURES_OF_TABLE)] | None = None
    pooling_factor: PoolingFactor | None = None
    pooling_factors: Annotated[list[PoolingFactor], Field(min_length=1, max_length=MAX_FEATURES_OF_TABLE)] | None = None
    data_type: _TypeText | None = None
    pooling: _TypeText | None = None
    optimizer: OptimizerName | None = None
    is_weighted: bool | None = None
    module_path: ModulePath | None = None
    use_virtual_table: bool = False
    stash_weights: bool = False
    access: dict[str, JsonValue] | None = None
    constraints: dict[str, JsonValue] | None = None
    hash_table: dict[str, JsonValue] | None = None
    weight_init_max: JsonValue = None
    weight_init_min: JsonValue = None
    num_embeddings_post_pruning: JsonValue = None
    init_fn: JsonValue = None
    need_pos: JsonValue = None
    input_dim: JsonValue = None
    total_num_buckets: JsonValue = None
    virtual_table_eviction_policy: JsonValue = None
    enable_embedding_update: JsonValue = None


class _Configs(StrictModel):
    """A list of tables."""

    listed: ClassVar[str] = "in docs/cli.md, under init"

    tables: Annotated[list[_Config], Field(min_length=1, max_length=MAX_TABLES)]


def is_configs(content: object) -> bool:
    """Whether a JSON value is a list of tables, or an object that has nothing but one."""
    tables = content.get("tables") if isinstance(content, dict) and set(content) == {"tables"} else content
    return isinstance(tables, list) and all(isinstance(table, dict) for table in tables)


def draft_of_configs(raw: bytes) -> Draft:
    """Read a JSON list of tables, or an object whose ``tables`` is one.

    Raises
    ------
    RejectedDocument
        Fields are missing, unknown or of another kind; pointers are into the file.
    """
    is_list = isinstance(read_json(raw), list)
    try:
        configs = parse_document(_LIST + raw + b"}" if is_list else raw, _Configs)
    except RejectedDocument as error:
        if not is_list:
            raise
        issues = [replace(issue, pointer=issue.pointer.removeprefix(_TABLES)) for issue in error.issues]
        raise RejectedDocument(issues, error.num_issues) from None
    base = "" if is_list else _TABLES
    issues = [issue for index, one in enumerate(configs.tables) for issue in _issues(f"{base}/{index}", one)]
    if issues:
        raise RejectedDocument(issues)
    return Draft(
        form="list of tables in JSON",
        tables=tuple(_table(one) for one in configs.tables),
        warnings=tuple(
            _not_carried(f"{base}/{index}", one) for index, one in enumerate(configs.tables) if one.stash_weights
        ),
    )


def type_name(text: str) -> str:
    """Return the name that a spec has for a type of TorchRec's, such as ``DataType.FP16``."""
    for prefix in _ENUMS:
        text = text.removeprefix(prefix)
    return text.lower()


def _issues(where: str, one: _Config) -> list[Issue]:
    issues = []
    if one.use_virtual_table:
        message = f'table "{one.name}" is a virtual table, which has no rows to place'
        issues.append(_issue(f"{where}/use_virtual_table", message, "leave the table out"))
    stated = [name for name in ("features", "pooling_factor", "pooling_factors") if getattr(one, name) is not None]
    if len(stated) > 1 or ("features" in stated and one.feature_names is not None):
        message = f'table "{one.name}" states its features twice'
        issues.append(_issue(where, message, "give features, or feature_names with pooling_factors"))
    elif one.pooling_factors is not None and len(one.pooling_factors) not in (1, len(one.feature_names or "1")):
        message = (
            f'table "{one.name}" has {len(one.pooling_factors)} pooling factors for'
            f" {len(one.feature_names or '1')} features"
        )
        issues.append(_issue(f"{where}/pooling_factors", message, "give one for each feature, or one for all"))
    return issues


def _not_carried(where: str, one: _Config) -> Issue:
    return Issue(
        code="not-carried",
        pointer=f"{where}/stash_weights",
        message=f'table "{one.name}" has stash_weights, which is a choice of the planner here',
        hint="set model.stash of the spec, so that weights may leave the accelerators during the dense part",
        severity="warning",
    )


def _issue(where: str, message: str, hint: str) -> Issue:
    return Issue(code="invalid-value", pointer=where, message=message, hint=hint)


def _table(one: _Config) -> Table:
    given = one.model_dump(exclude_none=True, exclude={*_OF_THE_RUNTIME, "use_virtual_table", "stash_weights"})
    table = cast("Table", given)
    for key in ("data_type", "pooling"):
        if key in table:
            table[key] = type_name(str(table[key]))
    table.pop("pooling_factors", None)
    factors = one.pooling_factors
    if factors is None and one.feature_names and one.pooling_factor is not None:
        factors = [one.pooling_factor]
        del table["pooling_factor"]
    if factors is not None:
        names = one.feature_names or [one.name]
        table.pop("feature_names", None)
        table["features"] = [
            {"name": name, "pooling_factor": factors[index % len(factors)]} for index, name in enumerate(names)
        ]
    return table
