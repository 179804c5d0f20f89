"""Pages read fields of plans that exist: a renamed field must not leave a page empty."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import get_args, get_type_hints, is_typeddict

import pytest

from planner.domain.plan.step_memory import MemoryPhase
from planner.domain.problem.dense import Dense
from planner.domain.problem.stash import Stash
from planner.output.documents import checkpoint as checkpoint_document
from planner.output.documents import index_dedup as index_dedup_document
from planner.output.documents import kv_cache as kv_cache_document
from planner.output.documents import plan as plan_document
from planner.output.documents import replica_groups as replica_groups_document
from planner.output.documents import search as search_document
from planner.output.documents import step as step_document
from planner.pricing.memory.ledger import LINES
from planner.verification.evaluate_placement import score
from tests.planner.verification.test_evaluate_placement import one_table_plan
from tests.support.planning.builders import ROOFLINE, make_problem, make_table


class _Assumption(search_document.EvidenceDocument):
    """An entry of the evidence, with its key."""

    subject: str


#: What variables of pages about plans hold, by their names.
VARIABLES = {
    "plan": plan_document.PlanDocument,
    "objective": plan_document.ObjectiveDocument,
    "termination": plan_document.PlanTerminationDocument,
    "provenance": search_document.ProvenanceDocument,
    "prediction": search_document.PredictionDocument,
    "shares": search_document.SharesDocument,
    "fallback": search_document.FallbackDocument,
    "analyticPhase": search_document.AnalyticPhaseDocument,
    "surrogate": search_document.SurrogateDocument,
    "serving": step_document.ServingDocument,
    "movement": search_document.MovementDocument,
    "checkpoint": checkpoint_document.CheckpointDocument,
    "size": checkpoint_document.CheckpointSizeDocument,
    "rank": step_document.RankDocument,
    "memory": step_document.StepMemoryDocument,
    "stash": step_document.StashDocument,
    "phase": step_document.PhaseDocument,
    "start": step_document.StartDocument,
    "tier": step_document.TierDocument,
    "entry": plan_document.TableDocument,
    "table": plan_document.TableDocument,
    "shard": plan_document.ShardDocument,
}
#: Variables of single files that hold something else: with their type if that is a part of a plan, too.
EXCEPTIONS = {
    "diff.js": {"a": plan_document.PlanDocument, "b": plan_document.PlanDocument},
    "plan_evidence.js": {"entry": _Assumption},
    "plan_extra.js": {"entry": search_document.RankBytesDocument},
    "plan_groups.js": {
        "groups": replica_groups_document.ReplicaGroupsDocument,
        "sync": replica_groups_document.ReplicaSyncDocument,
        "size": replica_groups_document.GroupSizeDocument,
    },
    "plan_index_dedup.js": {
        "dedup": index_dedup_document.IndexDedupDocument,
        "setting": index_dedup_document.IndexDedupSettingDocument,
    },
    "plan_kv_cache.js": {
        "cache": kv_cache_document.KvCacheDocument,
        "size": kv_cache_document.KvCacheSizeDocument,
    },
    "plan_gap.js": {"parts": search_document.GapPartsDocument},
    "plan_objectives.js": {
        "one": search_document.OrderedObjectiveDocument,
        "point": search_document.TradePointDocument,
    },
    "plan_facts.js": {"entry": None},  # of the list of plans
    "plan_use.js": {"entry": None},  # of the list of plans
    "plan_why.js": {"entry": None, "phase": None},  # of an explanation
}
READ = re.compile(r"(?<![\w./])(\w+)((?:\??\.\w+)+)")
DESTRUCTURED = re.compile(r"const \{([^}]*)\} = (\w+);")


def reads(source: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the variables that a page reads fields of, and the fields one below the other."""
    for match in READ.finditer(source):
        yield match[1], re.findall(r"\w+", match[2])
    for match in DESTRUCTURED.finditer(source):
        yield from ((match[2], [name.strip()]) for name in match[1].split(","))


def unknown_field(kind: type, fields: list[str]) -> str | None:
    """Return the first field that the definition lacks; what is no part of a plan, such as a list, has any."""
    for field in fields:
        hints = get_type_hints(kind) if is_typeddict(kind) else None
        if hints is None:
            return None
        if field not in hints:
            return f"{kind.__name__} has no {field}"
        part_or_null = [hints[field], *get_args(hints[field])] if NoneType in get_args(hints[field]) else [hints[field]]
        kind = next(filter(is_typeddict, part_or_null), hints[field])
    return None


def unknown_fields(source: str, name: str = "") -> list[str]:
    variables = {**VARIABLES, **EXCEPTIONS.get(name, {})}
    found = (
        unknown_field(variables[variable], fields) for variable, fields in reads(source) if variables.get(variable)
    )
    return [text for text in found if text is not None]


def pages(root: Path) -> list[Path]:
    folder = root / "api" / "http" / "pages" / "assets" / "pages"
    return [folder / "plan.js", *folder.glob("plan_*.js"), folder / "diff.js"]


def test_pages_read_fields_that_exist(root: Path) -> None:
    for page in pages(root):
        assert unknown_fields(page.read_text(), page.name) == [], page.name


def test_pages_read_most_parts_of_a_plan(root: Path) -> None:
    found = {fields[0] for page in pages(root) for variable, fields in reads(page.read_text()) if variable == "plan"}
    assert found >= {
        "ranks",
        "phases",
        "tiers",
        "tables",
        "movement",
        "checkpoint",
        "serving",
        "prediction",
        "gap_parts",
        "objectives",
    }


@pytest.mark.parametrize(
    ("source", "unknown"),
    [
        ("plan.tables.map((entry) => entry.shards.length + plan.movement?.seconds)", []),
        ("`${plan.digest}` + shard.num_bytes", ["PlanDocument has no digest", "ShardDocument has no num_bytes"]),
        ("plan.checkpoint?.full.bytes ?? plan.checkpoint.full.size", ["CheckpointSizeDocument has no size"]),
        ("const { objective, ending } = plan;", ["PlanDocument has no ending"]),
        ('import { x } from "./plan.js"; other.digest', []),
    ],
)
def test_a_field_that_does_not_exist_is_found(source: str, unknown: list[str]) -> None:
    assert unknown_fields(source) == unknown


def test_the_memory_page_shows_every_line_of_the_ledger(root: Path) -> None:
    """A line without a colour would be left out of the bars."""
    script = (root / "api/http/pages/assets/pages/plan_memory.js").read_text()
    block = re.search(r"LINE_COLOURS = \{(.*?)\};", script, re.DOTALL)
    assert block is not None
    assert set(re.findall(r"^  (\w+): \d+,$", block[1], re.MULTILINE)) == set(LINES)


def test_the_memory_page_shows_every_phase_and_line_of_a_step(root: Path) -> None:
    script = (root / "api/http/pages/assets/pages/plan_step_memory.js").read_text()
    colours = re.search(r"LINE_COLOURS = \{(.*?)\};", script, re.DOTALL)
    phases = re.search(r"PHASES = \[(.*?)\];", script, re.DOTALL)
    assert colours is not None
    assert phases is not None
    assert re.findall(r'"(\w+)"', phases[1]) == list(MemoryPhase.labels())
    _, placement = one_table_plan()
    dense = Dense(forward_seconds=1.0, backward_seconds=1.0, activation_bytes=1e6)
    problem = make_problem(make_table(dim=128), dense=dense, stash=Stash())
    (memory, *_) = [one.step_memory for one in score(problem, placement, ROOFLINE).ranks]
    assert memory is not None
    lines = {*memory.persistent_bytes, *(line for held in memory.buffer_bytes.values() for line in held)}
    number = {line: int(code) for line, code in re.findall(r"^  (\w+): (\d+),$", colours[1], re.MULTILINE)}
    assert set(number) == lines
    for held in memory.buffer_bytes.values():
        in_bar = [number[line] for line in (*memory.persistent_bytes, *held)]
        assert len(set(in_bar)) == len(in_bar)
