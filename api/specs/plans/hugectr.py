"""From a plan of HugeCTR's embedding collection to a plan document of ours.

Such a plan has the GPUs of each table and the number of its column pieces; the rest follows
(:mod:`planner.options.runtimes.hugectr.geometry`). HugeCTR deals rows out by their remainder, our row blocks are
ranges: a range of as many rows stands for those of one remainder, which is read as often where nothing is known of
single ids.
"""

from collections.abc import Iterator, Sequence

from api.schemas.hugectr_plan import HugeCtrPlan, TableReference
from api.schemas.table import TableSpec
from api.specs.input.json import RejectedDocument, parse_document, pointer
from api.specs.plans.rewritten import Piece, PlannedJob, RewrittenPlan, table_document
from cost_models.text.read_number import whole_number
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.runtimes.geometry import listed

_HINT = "give the spec of the model and the cluster that the plan is for"
_MAX_ISSUES = 50
_MARKS = ("shard_matrix", "shard_strategy")


def is_hugectr(content: object) -> bool:
    """Whether a JSON document has the form that HugeCTR takes, or ``shardplan export --format hugectr`` writes."""
    return isinstance(content, dict) and "schema_version" not in content and all(mark in content for mark in _MARKS)


def plan_of_hugectr(raw: bytes, job: PlannedJob) -> RewrittenPlan:
    """Rewrite a plan of HugeCTR's as a document of ours.

    Raises
    ------
    RejectedDocument
        The document is malformed, or says what cannot be of this job's tables, or what no scheme of ours is.
    """
    given = parse_document(raw, HugeCtrPlan)
    reader = _Reader(given, job)
    placed: dict[str, dict[str, object]] = {}  # by pointer
    for where, reference, kind, pieces in _entries(given):
        table = reader.table(reference, where)
        if table is None:
            continue
        if any(one["name"] == table.name for one in placed.values()):
            reader.report(where, f'table "{table.name}" stands twice in shard_strategy', "list it once")
            continue
        try:
            placed[where] = reader.placed(table, kind, pieces)
        except ValueError as error:
            reader.report(where, f'table "{table.name}": {error}', _HINT)
    reader.check_matrix({str(one["name"]) for one in placed.values()})
    if reader.issues:
        raise RejectedDocument(reader.issues[:_MAX_ISSUES], len(reader.issues))
    return RewrittenPlan(
        document={
            "schema_version": 1,
            "world_size": reader.num_gpus,
            "ranks_per_host": reader.gpus_per_node,
            "tables": list(placed.values()),
        },
        pointers=tuple(placed),
        warnings=tuple(reader.warnings()),
    )


def _entries(given: HugeCtrPlan) -> Iterator[tuple[str, TableReference, str, int]]:
    """Yield pointer, table, kind of its group and number of column pieces."""
    for group, (kind, members) in enumerate(given.shard_strategy):
        for member, one in enumerate(members):
            reference, pieces = one if isinstance(one, tuple) else (one, 1)
            yield pointer(("shard_strategy", group, 1, member)), reference, kind, pieces


class _Reader:
    """Turns references to tables into tables of the job, and GPUs into shards; keeps what is wrong."""

    def __init__(self, given: HugeCtrPlan, job: PlannedJob) -> None:
        self._given, self._job = given, job
        self._by_name = {table.name: table for table in job.tables}
        self._sizes = {one.name: (index, one) for index, one in enumerate(given.tables or ())}
        self._by_position = self._has_row_blocks = False
        self.issues: list[Issue] = []
        self.num_gpus = len(given.shard_matrix)
        if given.num_gpus not in (None, self.num_gpus):
            self.report("/shard_matrix", f"{self.num_gpus} GPUs are listed, and num_gpus says {given.num_gpus}", _HINT)
        nodes = given.num_nodes or (len(given.vvgpu) if given.vvgpu else None)
        self.gpus_per_node = job.ranks_per_host if nodes is None else max(self.num_gpus // nodes, 1)
        if nodes is not None and self.num_gpus % nodes:
            self.report("/shard_matrix", f"{self.num_gpus} GPUs are no multiple of {nodes} nodes", _HINT)
        self._gpus: dict[str, list[int]] = {}
        for gpu, references in enumerate(given.shard_matrix):
            for place, reference in enumerate(references):
                table = self.table(reference, pointer(("shard_matrix", gpu, place)))
                if table is not None:
                    self._gpus.setdefault(table.name, []).append(gpu)

    def report(self, where: str, message: str, hint: str, code: str = "invalid-value") -> None:
        self.issues.append(Issue(code=code, pointer=where, message=message, hint=hint))

    def table(self, reference: TableReference, where: str) -> Table | TableSpec | None:
        """Return the table of the job that a name or a position means; reports it if there is none."""
        found = self._by_name.get(str(reference)) if isinstance(reference, str) else None
        if found is None and (position := whole_number(str(reference))) is not None and position >= 0:
            if self._given.tables is None:
                self._by_position = True
                found = self._job.tables[position] if position < len(self._job.tables) else None
            elif position < len(self._given.tables):
                found = self._by_name.get(self._given.tables[position].name)
        if found is None:
            self.report(where, "the spec has no table of this name or position", _HINT, code="unknown-table")
        return found

    def placed(self, table: Table | TableSpec, kind: str, num_pieces: int) -> dict[str, object]:
        """Return a table of a plan document; raises ``ValueError`` with what cannot be."""
        index, stated = self._sizes.get(table.name, (0, None))
        for what, size, own in (
            () if stated is None
            else (("max_vocabulary_size", stated.max_vocabulary_size, table.num_embeddings),
                  ("ev_size", stated.ev_size, table.embedding_dim))
        ):  # fmt: skip
            if size not in (None, -1, own):
                raise ValueError(f"/tables/{index}/{what} is {size}, and the spec says {own}")
        gpus = sorted(set(self._gpus.get(table.name, ())))
        if kind == "dp":
            if gpus and gpus != list(range(self.num_gpus)):
                raise ValueError(f"a dp table is on every GPU, and the matrix has it on {listed(gpus)} alone")
            gpus = list(range(self.num_gpus))
        elif not gpus:
            raise ValueError("no GPU of the matrix has it")
        elif len(gpus) != len(self._gpus[table.name]):
            raise ValueError("a GPU of the matrix lists it twice")
        scheme, num_blocks = self._scheme(gpus, kind, num_pieces)
        if table.embedding_dim % num_pieces:
            raise ValueError(f"{table.embedding_dim} columns are no multiple of {num_pieces} pieces")
        width = table.embedding_dim // num_pieces
        block = -(-table.num_embeddings // num_blocks)
        self._has_row_blocks |= num_blocks > 1
        pieces: list[Piece] = []
        for place, gpu in enumerate(gpus):
            piece, number = (0, 0) if kind == "dp" else divmod(place, num_blocks)
            first = min(number * block, table.num_embeddings)
            pieces.append((gpu, first, min(block, table.num_embeddings - first), piece * width, width))
        return table_document(
            table,
            module_path=table.module_path or "",
            sharding_type=scheme.label,
            kernel=Kernel.DENSE if kind == "dp" else Kernel.FUSED,
            pieces=pieces,
        )

    def _scheme(self, gpus: Sequence[int], kind: str, num_pieces: int) -> tuple[Scheme, int]:
        """Return the scheme of a table and its number of row blocks; raises ``ValueError`` if no scheme is so."""
        if kind == "dp":
            if num_pieces > 1:
                raise ValueError("a dp table has no column pieces")
            return Scheme.DATA_PARALLEL, 1
        if len(gpus) % num_pieces:
            raise ValueError(f"{len(gpus)} GPUs are no multiple of {num_pieces} column pieces")
        num_blocks = len(gpus) // num_pieces
        if num_blocks == 1:
            return Scheme.COLUMN_WISE if num_pieces > 1 else Scheme.TABLE_WISE, 1
        if num_pieces == 1 and num_blocks == self.num_gpus:
            return Scheme.ROW_WISE, num_blocks
        groups = [gpus[start : start + num_blocks] for start in range(0, len(gpus), num_blocks)]
        node = self.gpus_per_node
        if all(list(group) == list(range(group[0], group[0] + node)) and group[0] % node == 0 for group in groups):
            return Scheme.TABLE_ROW_WISE if num_pieces == 1 else Scheme.GRID_SHARD, num_blocks
        raise ValueError(
            f"its rows are cut over GPUs {listed(gpus)}, which are neither all {self.num_gpus} nor those of whole"
            f" nodes of {node}: no scheme has such row blocks, and no cost model prices them"
        )

    def check_matrix(self, listed_tables: set[str]) -> None:
        """Report tables of the matrix that stand in no group."""
        for name in self._gpus:
            if name not in listed_tables and not self.issues:
                self.report("/shard_strategy", f'table "{name}" of shard_matrix is in no group', "add it to one")

    def warnings(self) -> Iterator[Issue]:
        """Yield what had to be assumed."""
        if self._by_position:
            yield Issue(
                code="table-by-position",
                pointer="/shard_matrix",
                message="tables are named by numbers, which are taken for positions among the tables of the spec",
                hint="list the names under tables, in their order",
                severity="warning",
            )
        if self._has_row_blocks:
            yield Issue(
                code="modulo-rows",
                pointer="/shard_matrix",
                message="HugeCTR deals rows out by their remainder; ranges of as many rows stand for them here",
                hint="bytes and expected lookups are the same; the rows of a GPU are others",
                severity="warning",
            )
