"""What a batch has done so far: a line for each plan, so that it can be taken up again where it was cut off."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from api.cli.batch.items import PLAN_ENDING, SPEC_ENDING, Item
from api.cli.errors import system_errors

_FILE = "batch.jsonl"
#: States of an item that another attempt would not change.
_FINAL = ("planned", "infeasible")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one item."""

    name: str
    model: str
    shape: str
    request_digest: str  # of the spec as it was planned; another spec is planned again
    state: str  # planned, infeasible, no-plan, invalid, failed
    plan_digest: str | None = None
    objective: str | None = None
    seconds: float | None = None  # per step
    relative_gap: float | None = None
    world_size: int | None = None  # of the job
    solver_seconds: float | None = None
    samples_per_second: float | None = None  # of all ranks together
    is_whole_step: bool | None = None  # whether these samples pass the dense part, or embeddings alone
    torchrec_ratio: float | None = None  # seconds of what TorchRec's planner makes, over those of the plan
    verdict: str = ""
    detail: str = ""

    @classmethod
    def of(cls, item: Item, request_digest: str) -> "Outcome":
        """Return that of an item of which nothing is known yet."""
        return cls(name=item.name, model=item.model, shape=item.shape, request_digest=request_digest, state="failed")


class BatchLog:
    """The log in the folder of a batch."""

    def __init__(self, folder: Path) -> None:
        """Read what there is. Raises ``BadInput`` where the folder cannot be used."""
        self._folder, self._path = folder, folder / _FILE
        self._known: dict[str, Outcome] = {}
        with system_errors(f"cannot use {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        # The next line must not be written at the end of one that was cut off.
        self._before = "\n" if text and not text.endswith("\n") else ""
        for line in text.splitlines():
            try:
                outcome = Outcome(**json.loads(line))
            except (ValueError, TypeError):
                continue  # a line that was cut off, or of another version: that item is done again
            self._known[outcome.name] = outcome

    def done(self, name: str, request_digest: str) -> Outcome | None:
        """Return what became of an item, where it is final, of this very request, and its plan is there."""
        found = self._known.get(name)
        if found is None or found.state not in _FINAL or found.request_digest != request_digest:
            return None
        return found if found.plan_digest is None or self.plan_path(name).exists() else None

    def add(self, outcome: Outcome) -> None:
        """Write down what became of an item, durably, after its plan."""
        with system_errors(f"cannot write {self._path}"), self._path.open("a", encoding="utf-8") as file:
            file.write(self._before + json.dumps(asdict(outcome)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._before = ""
        self._known[outcome.name] = outcome

    def plan_path(self, name: str) -> Path:
        return self._folder / f"{name}{PLAN_ENDING}"

    def spec_path(self, name: str) -> Path:
        """Return where the spec lies that the plan is of, with the shape and all that the command line set."""
        return self._folder / f"{name}{SPEC_ENDING}"
