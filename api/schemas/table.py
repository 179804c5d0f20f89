"""Tables of a spec: what each is, which rows are looked up, and what the planner may do with it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from api.schemas.base import ModulePath, Name, StatisticsReference, StrictModel, fields_disagree
from api.schemas.hash_table import HashTableSpec
from api.schemas.shard import MAX_SHARDS_OF_TABLE, PinnedShardSpec
from planner.domain.problem.cluster import MAX_RANKS

MAX_FEATURES_OF_TABLE = 2_000

DataTypeName = Literal["fp32", "fp16", "bf16", "int8", "int4", "int2"]
PoolingName = Literal["sum", "mean", "none"]
SchemeName = Literal[
    "data_parallel", "table_wise", "column_wise", "row_wise", "table_row_wise", "table_column_wise", "grid_shard"
]
KernelName = Literal[
    "dense",
    "fused",
    "fused_uvm",
    "fused_uvm_caching",
    "key_value",
    "hash",
    "hash_host",
    "hash_hybrid",
    "hash_caching",
]
OptimizerName = Literal[
    "none",
    "sgd",
    "rowwise_adagrad",
    "adagrad",
    "lars_sgd",
    "adam",
    "lamb",
    "partial_rowwise_adam",
    "partial_rowwise_lamb",
]

IdOrderName = Literal["hashed", "frequency_sorted", "unknown"]

Fraction = Annotated[float, Field(ge=0, le=1)]
CachedShare = Annotated[float, Field(gt=0, le=1)]
Point = Annotated[list[Fraction], Field(min_length=2, max_length=2)]
# Inner lists stop at their first bad item, so that one body cannot cause millions of findings.
Points = Annotated[list[Point], Field(min_length=1, max_length=10_000, fail_fast=True)]
Count = Annotated[float, Field(gt=0, le=2**53)]
Counts = Annotated[
    list[Annotated[list[Count], Field(min_length=2, max_length=2)]],
    Field(min_length=1, max_length=1_000, fail_fast=True),
]
RankIndex = Annotated[int, Field(ge=0, lt=MAX_RANKS)]
Ranks = Annotated[list[RankIndex], Field(min_length=1, max_length=MAX_RANKS, fail_fast=True)]
PoolingFactor = Annotated[float, Field(ge=0, le=1e7)]
Histogram = Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=17, max_length=17)]


#: Kinds of access statistics, and those that say how hot the hottest rows are.
_STATISTICS = ("zipf_alpha", "reuse_histogram", "access_cdf", "miss_ratio_curve", "statistics")
_RANKED = ("zipf_alpha", "reuse_histogram", "access_cdf", "statistics")


class FeatureSpec(StrictModel):
    """A stream of ids that is looked up in a table."""

    name: Name = Field(description="Name of the feature.", examples=["cat_0"])
    pooling_factor: PoolingFactor = Field(
        description="Mean ids per sample and pooling. Unit: ids. 0 for a feature that never occurs.", examples=[3.0]
    )
    num_poolings: Annotated[float, Field(gt=0, le=1e5)] = Field(
        default=1.0, description="Pooled outputs per sample. Unit: outputs.", examples=[1.0]
    )


class AccessSpec(StrictModel):
    """Which rows of a table a batch touches, by at most one kind of statistics, and which row numbers these have."""

    zipf_alpha: Annotated[float, Field(ge=0, le=10)] | None = Field(
        default=None, description="Row i (hottest first) is looked up with probability ~ i ** -alpha.", examples=[1.05]
    )
    reuse_histogram: Histogram | None = Field(
        default=None,
        description="Distinct rows that one batch looks up 1, 2, 3-4, 5-8, ..., 16385-32768, more times. Unit: rows.",
    )
    access_cdf: Points | None = Field(
        default=None,
        description="[[row_fraction, access_fraction], ...], hottest rows first, ending at [1, 1].",
        examples=[[[0.1, 0.9], [1.0, 1.0]]],
    )
    distinct_rows: Counts | None = Field(
        default=None,
        description="[[lookups, distinct_rows], ...] as counted; needs access_cdf. Unit: rows.",
        examples=[None],
    )
    miss_ratio_curve: Points | None = Field(
        default=None,
        description="[[cache_fraction, miss_ratio], ...]: share of lookups that an LRU cache of that share misses.",
        examples=[[[0.1, 0.3], [0.5, 0.05]]],
    )
    statistics: StatisticsReference | None = Field(
        default=None,
        description="Digest of stored statistics; after # the table's name in them, where it is another than here.",
        examples=["sha256:" + 64 * "0"],
    )

    ids: IdOrderName | None = Field(
        default=None,
        description="How rows are numbered: hashed spreads lookups over the rows, frequency_sorted numbers the hottest"
        " rows first. null and unknown: row blocks are priced as equal, unless row_cdf or statistics say where the"
        " lookups go.",
        examples=["hashed"],
    )
    row_cdf: Points | None = Field(
        default=None,
        description="[[row_fraction, lookup_fraction], ...], by row number and ending at [1, 1]: the share of lookups"
        " that goes to the first share of the rows.",
        examples=[[[0.125, 0.7], [1.0, 1.0]]],
    )
    distinct_row_cdf: Points | None = Field(
        default=None,
        description="The same of the distinct rows of a step; needs row_cdf. null means the shares of the lookups.",
        examples=[None],
    )

    @model_validator(mode="after")
    def _agree(self) -> "AccessSpec":
        given = [name for name in _STATISTICS if getattr(self, name) is not None]
        if len(given) > 1 or not (given or self.ids or self.row_cdf):
            raise fields_disagree(
                f"give exactly one of {', '.join(_STATISTICS)}, or ids or row_cdf alone", *_STATISTICS
            )
        if self.distinct_rows is not None and self.access_cdf is None:
            raise fields_disagree("distinct_rows needs access_cdf: give both", "access_cdf", "distinct_rows")
        if self.ids not in (None, "unknown") and self.row_cdf is not None:
            raise fields_disagree("give ids or row_cdf: both say where lookups go", "ids", "row_cdf")
        if self.distinct_row_cdf is not None and self.row_cdf is None:
            raise fields_disagree("distinct_row_cdf needs row_cdf: give both", "row_cdf", "distinct_row_cdf")
        if self.ids == "frequency_sorted" and not {*given} & {*_RANKED}:
            message = f"frequency_sorted needs {', '.join(_RANKED[:-1])} or {_RANKED[-1]}: how hot the hottest rows are"
            raise fields_disagree(message, "ids", *_RANKED)
        return self


class PinnedSpec(StrictModel):
    """The exact placement of one table, in the words of a plan."""

    sharding_type: SchemeName = Field(description="Scheme.", examples=["table_wise"])
    compute_kernel: KernelName = Field(description="Kernel.", examples=["fused"])
    cache_load_factor: CachedShare | None = Field(
        default=None, description="Cached share of the rows, where the kernel has a cache.", examples=[None]
    )
    shards: Annotated[list[PinnedShardSpec], Field(min_length=1, max_length=MAX_SHARDS_OF_TABLE, fail_fast=True)] = (
        Field(description="All shards of the table, in any order. data_parallel lists one full copy per rank.")
    )


class TableConstraintsSpec(StrictModel):
    """What the planner may do with one table; a field left out leaves the choice to it."""

    sharding_types: Annotated[list[SchemeName], Field(min_length=1, max_length=7)] | None = Field(
        default=None, description="Schemes that may be used.", examples=[["table_wise", "row_wise"]]
    )
    compute_kernels: Annotated[list[KernelName], Field(min_length=1, max_length=9)] | None = Field(
        default=None,
        description="Kernels that may be used; null means dense and fused (of dynamicemb's hash tables hash), and "
        "where the tables do not fit into the accelerators' memory also fused_uvm and fused_uvm_caching "
        "(hash_caching).",
        examples=[["fused", "fused_uvm_caching"]],
    )
    ranks: Ranks | None = Field(default=None, description="Ranks that may hold a part of the table.", examples=[[0, 1]])
    hosts: Ranks | None = Field(default=None, description="Hosts that may hold a part of the table.", examples=[[0]])
    min_partition: Annotated[int, Field(ge=4, le=2**14)] | None = Field(
        default=None, description="Least width of a column shard. Unit: columns.", examples=[32]
    )
    pinned: PinnedSpec | None = Field(
        default=None, description="Where the table goes, exactly; the planner places the others around it."
    )
    cache_load_factors: Annotated[list[CachedShare], Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="Shares of the rows that a kernel with a cache may keep in the accelerator's memory; the planner "
        "chooses one. null means 0.02, 0.05, 0.1, 0.2, 0.4 and 0.7; of dynamicemb's hash tables, which name one, 0.1.",
        examples=[[0.1, 0.2, 0.5]],
    )
    hot_row_fractions: (
        Annotated[list[Annotated[float, Field(gt=0, lt=1)]], Field(max_length=1000, fail_fast=True)] | None
    ) = Field(
        default=None,
        description="Shares of the rows, the hottest ones, that fused_uvm may keep in the accelerator's memory, for "
        "runtimes that number rows by heat (generic); the planner chooses one, or none. null means those that serve "
        "30, 50, 70, 80, 90, 95, 98 and 99.5% of the lookups.",
        examples=[None],
    )
    data_types: Annotated[list[DataTypeName], Field(min_length=1, max_length=10)] | None = Field(
        default=None,
        description="Types that the weights may have; the planner chooses one. null means data_type alone.",
        examples=[["fp32", "fp16"]],
    )


#: Of most tables: checked once, for specs have thousands.
_UNCONSTRAINED = TableConstraintsSpec()


class TableSpec(StrictModel):
    """One embedding table."""

    name: Name = Field(description="Name of the table, unique in the spec.", examples=["cat_0"])
    num_embeddings: Annotated[int, Field(ge=1, le=2**40)] = Field(
        description="Rows of the table; with a hash_table the ids that are expected at a time. Unit: rows.",
        examples=[40_000_000],
    )
    embedding_dim: Annotated[int, Field(ge=1, le=2**14)] = Field(
        description="Columns of the table. Unit: columns.", examples=[128]
    )
    data_type: DataTypeName = Field(default="fp32", description="Type of the weights.", examples=["fp32"])
    pooling: PoolingName = Field(
        default="sum", description="How a bag becomes one row; none for a sequence.", examples=["sum"]
    )
    is_weighted: bool = Field(default=False, description="Whether ids carry weights.", examples=[False])
    optimizer: OptimizerName = Field(
        default="rowwise_adagrad",
        description="Optimizer of the table; its state takes memory. Inference: none.",
        examples=["rowwise_adagrad"],
    )
    features: (
        Annotated[list[FeatureSpec], Field(min_length=1, max_length=MAX_FEATURES_OF_TABLE, fail_fast=True)] | None
    ) = Field(default=None, description="Features that are looked up in this table.")
    pooling_factor: PoolingFactor | None = Field(
        default=None,
        description="Short for one feature that is named like the table. Unit: ids per sample.",
        examples=[3.0],
    )
    access: AccessSpec | None = Field(default=None, description="Which rows a batch touches, where it is known.")
    hash_table: HashTableSpec | None = Field(
        default=None, description="How ids become rows, if they are not row numbers; null means that they are."
    )
    constraints: TableConstraintsSpec = Field(
        default_factory=lambda: _UNCONSTRAINED, description="What the planner may do with this table."
    )
    module_path: ModulePath = Field(
        default="",
        description="Path of the embedding module that holds the table in the model.",
        examples=["sparse_arch.embedding_bag_collection"],
    )

    @property
    def num_rows(self) -> int:
        """Rows of the weights: of a hash table its slots."""
        capacity = None if self.hash_table is None else self.hash_table.capacity
        return self.num_embeddings if capacity is None else capacity

    @model_validator(mode="after")
    def _features_or_shorthand(self) -> "TableSpec":
        if (self.features is None) == (self.pooling_factor is None):
            message = "give either features or pooling_factor"
            raise fields_disagree(message, "features", "pooling_factor")
        return self
