"""Lines of a log without what launchers and terminals put around them, and which process wrote each.

Launchers tag lines with the process: ``srun --label`` (``0: ``), ``mpirun --tag-output`` (``[1,0]<stdout>:``, in the
middle of a line, too), ``torchrun`` (``[rank0]:``), containers (``worker-0 | ``). Loggers put a time before them.
Lines of several processes interleave; those of one process follow each other.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MPIRUN = re.compile(r"\[(?:[\w.-]{1,120}@)?[0-9]{1,9},[0-9]{1,9}\]<\w{1,20}>:?")
#: A logger's time, a launcher's tag, a container's name; more before a line are no prefixes.
_MOST_PREFIXES = 4
_TAGS = (
    _MPIRUN,
    re.compile(r"[0-9]{1,6}:(?![0-9])"),  # srun --label; not a clock
    re.compile(r"\[?(?:rank|default) ?[0-9]{1,6}\]?:\s?", re.IGNORECASE),
    re.compile(r"[A-Za-z][\w./-]{0,120} *\| ?"),  # docker compose, kubectl
    re.compile(r"\[[\w./-]{1,120}\] (?=\s*(?:#|[0-9]+\s))"),
    re.compile(r"[A-Za-z][\w-]{0,80}(?:\.[\w-]{1,80}){0,6}: (?=\s*(?:#|[0-9]+\s))"),  # pdsh: the name of the host
)
_TIME = re.compile(
    r"\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?\]?[\s:|-]*"
    r"(?:\[?(?:INFO|DEBUG|WARNING)\]?[\s:|-]*)?"
)


class LogLine(NamedTuple):
    """A line: its number in the file from 1, the tag of its process (``""``: none) and the rest of it."""

    number: int
    tag: str
    text: str


def log_lines(text: str) -> Iterator[LogLine]:
    """Yield the lines of a log without tags, times and colours."""
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        line, tag = _ESCAPE.sub("", raw).rstrip(), ""
        for _ in range(_MOST_PREFIXES):
            if (found := _prefix(line)) is None:
                break
            if not _TIME.fullmatch(found[0]):
                tag = tag or found[0].strip()
            line = line[found.end() :]
        yield LogLine(number, tag, _MPIRUN.sub(" ", line).strip())


def _prefix(line: str) -> re.Match[str] | None:
    return next((found for pattern in (_TIME, *_TAGS) if (found := pattern.match(line)) and found.end()), None)
