"""What a live model says of a table, and whether all ranks have the same model."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .documents import canonical_bytes
from .verdicts import Difference, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveHashTable:
    """How a module of managed collisions gives ids their slots, in the fields of a spec's ``hash_table``."""

    mode: str
    eviction: str
    eviction_interval: int | None = None
    bucket_size: int | None = None
    max_probe: int | None = None
    metadata_bytes_per_slot: int = 0

    def spec(self) -> dict[str, object]:
        """Return the object of a spec, without what the mode does not have."""
        return {name: value for name, value in asdict(self).items() if value not in (None, 0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTable:
    """One table of an ``EmbeddingBagCollection``, or, with pooling ``none``, of an ``EmbeddingCollection``."""

    module_path: str
    name: str  # as plans have it: PATH/NAME if several modules have a table of the name
    num_embeddings: int
    embedding_dim: int
    data_type: str
    pooling: str
    is_weighted: bool
    feature_names: tuple[str, ...]
    optimizer: str | None  # set by apply_optimizer_in_backward, else None
    hash_table: LiveHashTable | None = None
    stash_weights: bool = False  # whether its weights leave the device while the dense part runs

    @property
    def name_in_module(self) -> str:
        """The name that TorchRec knows the table by."""
        return self.name.removeprefix(f"{self.module_path}/") if self.module_path else self.name


def unique_names(named: Sequence[tuple[str, str]]) -> list[str]:
    """Return the name in plans of each (module path, name): ``PATH/NAME`` if several modules have the name."""
    counts = Counter(name for _, name in named)
    return [f"{path}/{name}" if path and counts[name] > 1 else name for path, name in named]


def fingerprint(tables: Sequence[LiveTable]) -> str:
    """Return the digest of everything that is known of a model's tables, and of their order."""
    return "sha256:" + hashlib.sha256(canonical_bytes([asdict(table) for table in tables])).hexdigest()


def rank_differences(mine: Sequence[LiveTable], first: Sequence[LiveTable]) -> list[Difference]:
    """Compare the model of this rank with that of rank 0, fact by fact."""
    theirs = {table.name: table for table in first}
    names = {table.name for table in mine}
    found = [f'table "{t.name}" is in its model, and not in that of rank 0' for t in mine if t.name not in theirs]
    found += [f'table "{t.name}" is in the model of rank 0, and not in its own' for t in first if t.name not in names]
    for table in mine:
        if table.name in theirs:
            other = asdict(theirs[table.name])
            found += [
                of_table(table, f"{name} is {value} in its model, {other[name]} in that of rank 0")
                for name, value in asdict(table).items()
                if value != other[name]
            ]
    if not found:
        pairs = [(one.name, their.name) for one, their in zip(mine, first, strict=True) if one.name != their.name][:1]
        found = [f'table "{one}" stands in its model where "{other}" stands in that of rank 0' for one, other in pairs]
    return [refuse(text) for text in found]


def of_table(table: LiveTable, text: str) -> str:
    """Return a reason with the table that it is about."""
    return f'table "{table.name}": {text}'
