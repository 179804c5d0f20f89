"""Tables, their features, and what the user allows for each."""

from dataclasses import dataclass, field

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.expect import expect
from planner.domain.problem.access import AccessCdf, AccessStatistics, IdOrder, ReuseHistogram, RowCdf, ZipfAccess
from planner.domain.problem.data_type import DATA_TYPES, DataType
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.optimizer import OPTIMIZERS, Optimizer

MAX_ROWS = 2**40
MAX_COLUMNS = 2**14
POOLINGS = ("sum", "mean", "none")
#: Access statistics that say how hot the hottest rows are.
RANKED = (ZipfAccess, ReuseHistogram, AccessCdf)
_RANKED_ACCESS = "a Zipf exponent, a reuse histogram or an access CDF of rows that are sorted by frequency"
# Words of checks that are made of every one of thousands of tables.
_A_POOLING = f"pooling to be one of {', '.join(POOLINGS)}"
_SOME_DATA_TYPES = f"data_types among {', '.join(DATA_TYPES)}, at least one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A stream of ids that is looked up in a table."""

    name: str
    pooling_factor: float  # mean ids per sample and pooling; 0 for a feature never seen
    num_poolings: float = 1.0  # pooled outputs per sample

    def __post_init__(self) -> None:
        expect(0 <= self.pooling_factor <= 1e7, "pooling_factor in [0, 1e7]")
        expect(0 < self.num_poolings <= 1e5, "num_poolings in (0, 1e5]")


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedPiece:
    """A range of columns of a pinned table, and where it goes.

    ``site`` is the rank of a piece that is one shard (table_wise, column_wise,
    table_column_wise), the host of one that is cut by rows over a host (table_row_wise,
    grid_shard), and 0 for one that is on all ranks (row_wise, data_parallel).
    """

    column_offset: int
    num_columns: int
    site: int

    def __post_init__(self) -> None:
        expect(self.column_offset >= 0, "column_offset >= 0")
        expect(self.num_columns >= 1, "num_columns >= 1")
        expect(self.site >= 0, "site >= 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTable:
    """The one placement that the user allows for a table: every cell of it is given."""

    sharding_type: Scheme
    compute_kernel: Kernel
    pieces: tuple[PinnedPiece, ...]  # left to right
    cache_load_factor: float | None = None
    in_scm: bool = False  # whether rows that the kernel reads from the host lie in storage-class memory

    def __post_init__(self) -> None:
        """Check that the pieces follow each other; the table says where they must end."""
        expect(len(self.pieces) > 0, "at least one piece")
        offset = 0
        for piece in self.pieces:
            expect(piece.column_offset == offset, "pieces left to right, without gaps")
            offset += piece.num_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConstraints:
    """What the user allows for one table; ``None`` leaves the choice to the planner."""

    sharding_types: frozenset[Scheme] | None = None
    compute_kernels: frozenset[Kernel] | None = None
    ranks: frozenset[int] | None = None
    hosts: frozenset[int] | None = None
    min_partition: int | None = None  # columns
    cache_load_factors: tuple[float, ...] | None = None  # cached shares of the rows, in (0, 1]
    hot_row_fractions: tuple[float, ...] | None = None  # where tables may be split by heat, in (0, 1)
    data_types: tuple[str, ...] | None = None  # names of types that the weights may have
    pinned: PinnedTable | None = None

    def __post_init__(self) -> None:
        """Reject sets that leave nothing."""
        for name in ("sharding_types", "compute_kernels", "ranks", "hosts"):
            if getattr(self, name) is not None:
                expect(bool(getattr(self, name)), f"at least one entry in {name}")
        cached, types = self.cache_load_factors, self.data_types
        expect(self.min_partition is None or self.min_partition >= 4, "min_partition >= 4")
        are_shares = cached is None or (len(cached) > 0 and all(0 < share <= 1 for share in cached))
        expect(are_shares, "cache_load_factors in (0, 1], at least one")
        expect(all(0 < share < 1 for share in self.hot_row_fractions or ()), "hot_row_fractions in (0, 1)")
        are_types = types is None or (len(types) > 0 and set(types) <= DATA_TYPES.keys())
        expect(are_types, _SOME_DATA_TYPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One embedding table."""

    name: str
    num_embeddings: int  # rows; of a hash table its slots
    embedding_dim: int
    features: tuple[Feature, ...]
    data_type: DataType = DATA_TYPES["fp32"]
    pooling: str = "sum"
    is_weighted: bool = False
    optimizer: Optimizer = OPTIMIZERS["rowwise_adagrad"]
    access: AccessStatistics | None = None
    ids: IdOrder | RowCdf = "unknown"  # which rows the lookups go to, by row number
    hash_table: HashTable | None = None  # what gives ids their rows; None if ids are row numbers
    constraints: TableConstraints = field(default_factory=TableConstraints)
    #: path of the embedding module that holds the table in the user's model, such as
    #: ``sparse_arch.embedding_bag_collection``; tables of one path share legality rules
    module_path: str = ""

    def __post_init__(self) -> None:
        expect(self.name != "", "a name")
        expect(1 <= self.num_embeddings <= MAX_ROWS, f"num_embeddings in [1, {MAX_ROWS}]")
        expect(1 <= self.embedding_dim <= MAX_COLUMNS, f"embedding_dim in [1, {MAX_COLUMNS}]")
        expect(len(self.features) > 0, "at least one feature")
        expect(self.pooling in POOLINGS, _A_POOLING)
        pinned, data_type = self.constraints.pinned, self.data_type
        if pinned is not None:
            num_columns = sum(piece.num_columns for piece in pinned.pieces)
            expect(num_columns == self.embedding_dim, f"pinned pieces of {self.embedding_dim} columns in all")
        is_ranked = self.ids != "frequency_sorted" or isinstance(self.access, RANKED)
        expect(is_ranked, _RANKED_ACCESS)
        if self.hash_table is not None:
            expect(self.hash_table.expected_rows <= self.num_embeddings, "as many slots as expected_rows, or more")
        is_trained = self.can_be_trained_as(data_type)
        expect(is_trained, f'optimizer "none" for {data_type.name} weights, which cannot be trained')

    @property
    def hash_table_mode(self) -> str:
        """Mode of the hash table; empty where ids are row numbers."""
        return "" if self.hash_table is None else self.hash_table.mode

    @property
    def is_pooled(self) -> bool:
        """Whether the lookups of a bag are summed or averaged into one row."""
        return self.pooling != "none"

    def can_be_trained_as(self, data_type: DataType) -> bool:
        """Whether weights of this type can have the table's optimizer; types that no kernel trains serve inference."""
        return data_type.trainable or self.optimizer.name == "none"

    @property
    def weight_bytes(self) -> float:
        """Stored bytes of the whole table, without optimizer state."""
        return self.num_embeddings * self.data_type.row_bytes(self.embedding_dim)

    @property
    def ids_per_sample(self) -> float:
        """Expected ids per sample over all features."""
        if len(self.features) == 1:  # as of nearly every table
            return self.features[0].pooling_factor * self.features[0].num_poolings
        return sum(f.pooling_factor * f.num_poolings for f in self.features)

    @property
    def least_weight_bytes(self) -> float:
        """Bytes of all rows in the narrowest of the data types that the weights may have and be trained in."""
        columns, names = self.embedding_dim, self.constraints.data_types
        allowed = [self.data_type] if names is None else [DATA_TYPES[name] for name in names]
        trained = [data_type for data_type in allowed if self.can_be_trained_as(data_type)]
        return self.num_embeddings * min(data_type.row_bytes(columns) for data_type in trained or allowed)

    @property
    def outputs_per_sample(self) -> float:
        """Output rows per sample: pooled bags, or ids of a sequence."""
        return sum(f.num_poolings for f in self.features) if self.is_pooled else self.ids_per_sample

    @property
    def expected_outputs_per_sample(self) -> float:
        """Output rows per sample as TorchRec's planner counts them: min(1, L) per pooling."""
        if not self.is_pooled:
            return self.ids_per_sample
        return sum(min(1.0, f.pooling_factor) * f.num_poolings for f in self.features)
