"""What a batch consists of: every spec on every shape of cluster, each with a name for its files."""

import glob
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from api.cli.errors import BadInput, echo
from api.cli.files import parse_assignment, read_bytes, with_changes
from api.specs.input.known_names import names_hint
from cost_models.hardware.profiles_loader import profile_ids
from planner.output.explain.text.layout import paragraph

_SHAPE = re.compile(r"([a-z0-9][a-z0-9._-]*):([1-9][0-9]{0,8})x([1-9][0-9]{0,8})")
_MAX_ITEMS = 100_000
_MAX_NAMED = 5
#: Endings of the files of an item.
PLAN_ENDING, SPEC_ENDING = ".plan.json", ".spec.json"


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster that specs are planned for in place of their own."""

    profile: str
    num_hosts: int
    ranks_per_host: int

    @property
    def name(self) -> str:
        """As it is written on the command line."""
        return f"{self.profile}:{self.num_hosts}x{self.ranks_per_host}"


@dataclass(frozen=True, slots=True)
class Item:
    """One spec on one shape."""

    model: str  # name of the spec's file, without folders that all have in common
    shape: str  # "" where it is the spec's own
    path: str
    changes: tuple[tuple[tuple[str, ...], object], ...]

    @property
    def name(self) -> str:
        """Name of its files, without an ending."""
        return self.model if not self.shape else f"{self.model}@{self.shape.replace(':', '-')}"

    def spec(self) -> bytes:
        """Return the spec as it is to be planned. Raises ``BadInput`` or ``InvalidProblem``."""
        return with_changes(read_bytes(self.path), dict(self.changes))


def parse_shape(text: str) -> Shape:
    """Return the shape that ``dgx-h100-80g:4x8`` names: four hosts with eight ranks each."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise BadInput(f"--shape takes PROFILE:HOSTSxRANKS, such as dgx-h100-80g:4x8, not {text!r}")
    if found[1] not in profile_ids():
        way_out = "\n".join(paragraph(names_hint(found[1], profile_ids())))
        raise BadInput(f"--shape {text}: no hardware profile of this name\n{way_out}")
    return Shape(found[1], int(found[2]), int(found[3]))


def items_of(
    sources: Sequence[str],
    shapes: Sequence[Shape],
    options: Sequence[tuple[tuple[str, ...], object]],
    sets: Sequence[str],
) -> list[Item]:
    """Return all specs of files, folders and patterns, on all shapes; by name. Raises ``BadInput``."""
    paths = _paths(sources)
    names = _names(paths)
    given = (*options, *map(parse_assignment, sets))
    on = [(shape.name, ((("hardware",), asdict(shape)), *given)) for shape in shapes] or [("", given)]
    items = [
        Item(name, shape, str(path), changes) for path, name in zip(paths, names, strict=True) for shape, changes in on
    ]
    if len(items) > _MAX_ITEMS:
        raise BadInput(f"{len(items):,} plans in one batch, {_MAX_ITEMS:,} at most")
    return items


def _paths(sources: Sequence[str]) -> list[Path]:
    found: dict[Path, None] = {}
    for source in sources:
        path = Path(source)
        if path.is_dir():
            documents = sorted(path.rglob("*.json"))
            inside = [one for one in documents if _is_spec(one)]
            _report_others(sorted(set(documents).difference(inside)), source)
        elif path.is_file():
            inside = [path]
        else:
            inside = sorted(Path(one) for one in glob.glob(source, recursive=True) if Path(one).is_file())
        if not inside:
            raise BadInput(f"{source}: no spec there; give files, folders, or quoted patterns such as 'specs/*.json'")
        found.update(dict.fromkeys(one.resolve() for one in inside))
    return list(found)


def _report_others(paths: Sequence[Path], folder: str) -> None:
    if paths:
        names = ", ".join(str(path.relative_to(folder)) for path in paths[:_MAX_NAMED])
        more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
        echo(f"shardplan: passed over in {folder}, for they are no specs:")
        for line in paragraph(f"{names}{more}"):
            echo(line)


def _is_spec(path: Path) -> bool:
    """Whether a file in a folder is meant as a spec, also a broken one; plans and other documents are passed over.

    So are the specs that a batch wrote next to its plans.
    """
    if path.name.endswith(SPEC_ENDING) and path.with_name(path.name.removesuffix(SPEC_ENDING) + PLAN_ENDING).exists():
        return False
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return True
    return not isinstance(document, dict) or "model" in document


def _names(paths: Sequence[Path]) -> list[str]:
    """Return a name for each file: its own, with as many folders as distinguish them, or a number."""
    parts = [path.with_suffix("").parts[1:] for path in paths]  # without the root
    open_ones = set(range(len(parts)))
    chosen = [one[-1] for one in parts]
    depth = 0
    while open_ones:
        depth += 1
        ends = Counter(one[-depth:] for one in parts)
        for index in sorted(open_ones):
            chosen[index] = "__".join(parts[index][-depth:])
            if ends[parts[index][-depth:]] == 1 or depth >= len(parts[index]):
                open_ones.remove(index)
    return _numbered(chosen)


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names of which none is like another, in the order of the given ones."""
    given, taken = Counter(names), set[str]()
    found = []
    for name in names:
        number, unique = 1, name
        while unique in taken or (number > 1 and unique in given):
            number += 1
            unique = f"{name}-{number}"
        taken.add(unique)
        found.append(unique)
    return found
