"""Where measured rows go as they come: a CSV file that a kill leaves whole, and that a later run goes on with."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from api.cli.errors import BadInput
from cost_models.measurements.csv_rows import csv_text
from cost_models.measurements.files import read_measurements
from cost_models.measurements.json_rows import rows_from_json
from cost_models.measurements.schema import COLUMN_NAMES, Kind, Measurements

#: Columns of a row that has been measured.
Row = dict[str, object]


class RowFile:
    """Appends the rows of one launch at a time, in one piece, to a CSV file or to standard output."""

    def __init__(self, path: Path | None, device: str) -> None:
        self._path, self._device = path, device
        self._next_launch = 0
        self._done: dict[Kind, int] = {}
        self.num_rows = 0
        #: of each launch: distance of the quartiles, as a share of its time
        self.spreads: dict[Kind, list[float]] = {}
        self._begun = False

    def go_on(self, seed: int, num_rows_of: Callable[[Kind, int], int]) -> None:
        """Take up a file that was measured on this machine with ``seed``, if it is there.

        A launch whose rows are not all there is dropped: it is measured again. ``num_rows_of`` says how many rows
        launch i of a kind has.

        Raises
        ------
        BadInput
            Where the rows are of another machine or seed.
        """
        if self._path is None or not self._path.exists() or not _drop_torn_line(self._path):
            return
        rows = read_measurements(self._path)
        for device in np.unique(rows.text("device")).tolist():
            if device != self._device:
                raise BadInput(f'{self._path} was measured on "{device}", and this is "{self._device}"')
        if not all(task.startswith(f"seed{seed}-") for task in rows.text("task").tolist()):
            first = rows.text("task")[0].item()
            raise BadInput(f"{self._path} begins with {first}, and the seed is {seed}: give the one that it began with")
        rows = _without_partial_launch(rows, num_rows_of)
        self._count(rows)
        part = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        part.write_text(csv_text(rows))
        part.replace(self._path)
        self._begun = True

    def done(self, kind: Kind) -> int:
        """Return how many launches of a kind are in the file."""
        return self._done.get(kind, 0)

    def add(self, rows: Sequence[Row]) -> None:
        """Append the rows of one launch, and leave them with the operating system, which a kill does not reach."""
        checked = rows_from_json([{**row, "launch": self._next_launch, "device": self._device} for row in rows])
        text = csv_text(checked, head=not self._begun)
        if self._path is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            with self._path.open("ab") as file:
                file.write(text.encode())
        self._begun = True
        self._count(checked)

    def _count(self, rows: Measurements) -> None:
        launches, first = np.unique(rows.counts("launch"), return_index=True)
        spreads = rows.numbers("spread_seconds") / rows.numbers("seconds")
        for kind, spread in zip(rows.text("kind")[first].tolist(), spreads[first].tolist(), strict=True):
            self._done[kind] = self._done.get(kind, 0) + 1
            self.spreads.setdefault(kind, []).append(spread)
        self._next_launch = int(launches[-1]) + 1 if len(launches) else 0
        self.num_rows += rows.num_rows


def _drop_torn_line(path: Path) -> bool:
    """Cut a file after its last whole line; return whether rows are left."""
    content, head = path.read_bytes(), ",".join(COLUMN_NAMES).encode()
    if content.partition(b"\n")[0] != head and not (head + b"\n").startswith(content):
        raise BadInput(f"{path} does not begin as a file of shardplan measure does")
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        path.write_bytes(whole)
    if whole.count(b"\n") > 1:
        return True
    path.unlink()
    return False


def _without_partial_launch(rows: Measurements, num_rows_of: Callable[[Kind, int], int]) -> Measurements:
    launch, kind = rows.counts("launch"), rows.text("kind")
    last = launch == launch.max()
    of_kind: Kind = kind[last][0].item()
    index = len(np.unique(launch[kind == of_kind])) - 1
    return rows if np.count_nonzero(last) >= num_rows_of(of_kind, index) else rows.take(~last)
