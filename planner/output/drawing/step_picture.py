"""The picture of a step: what ranks do, and what their memory holds meanwhile, as an SVG that needs nothing else."""

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.step import RankDocument
from planner.output.drawing.palette import MEMORY_LINES, WAIT, WAIT_WORDS, colour_of, memory_groups, style_sheet
from planner.output.timeline.bars import NESTED, Bar, BarKind, Timeline, Track
from planner.output.timeline.memory_course import MemorySpan, memory_course

_WIDTH, _LEFT, _RIGHT, _EDGE = 960.0, 112.0, 40.0, 12.0
_PLOT = _WIDTH - _LEFT - _RIGHT
_ROW, _GAP, _MEMORY, _AXIS, _LEGEND_ROW = 22.0, 6.0, 180.0, 34.0, 20.0
_PARTS = 10.0  # of a row with parts of phases, below their names
_LETTER = 6.6  # pixels of a letter at 12 pixels, about
_TRACK_NAMES = {
    Track.STEP: "step",
    Track.NEXT_BATCH: "next batch",
    Track.STASH: "stash",
    Track.ALL_REDUCE: "all-reduce",
    Track.CHECKPOINT: "checkpoint",
}


def step_picture(timeline: Timeline, loads: Sequence[RankDocument], ranks: Sequence[int]) -> str:
    """Return an SVG of some ranks of a timeline, each with its memory if the dense part is timed.

    Parameters
    ----------
    timeline
        Of the plan.
    loads
        Of all ranks of the plan, by rank.
    ranks
        Those to draw, in this order.
    """
    drawn = _Picture(timeline)
    for rank in ranks:
        drawn.rank(rank, loads[rank])
    return drawn.svg(ranks)


def rank_to_draw(plan: CompactPlanDocument, loads: Sequence[RankDocument]) -> int:
    """Return the rank with the highest peak of memory, or else the slowest one in the longest phase."""
    known = [(memory["peak_bytes"], -load["rank"]) for load in loads if (memory := load.get("step_memory"))]
    if known:
        return -max(known)[1]
    return max(plan["phases"], key=lambda phase: phase["seconds"])["slowest_rank"]


class _Picture:
    """Draws from the top; ``_y`` is the lower edge of what is there."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._y = 34.0
        self._parts: list[str] = []
        self._legend: dict[str, str] = {}  # words by class, in the order in which they come

    def rank(self, rank: int, load: RankDocument) -> None:
        head = f"rank {rank} on host {load['host']}"
        self._parts.append(_text(_EDGE, self._y + 14, head, " font-weight='600'"))
        self._y += 22
        bars = [bar for bar in self._timeline.bars if bar.duration_seconds[rank] > 0]
        for track in Track:
            row = [bar for bar in bars if bar.track is track]
            if row:
                self._parts.append(_text(_LEFT - 8, self._y + 15, _TRACK_NAMES[track], " class='faint'", "end"))
                height = _ROW + _PARTS * any(bar.kind in NESTED for bar in row)
                for bar in row:
                    self._parts += self._bar(bar, rank, height)
                self._y += height + _GAP
        memory = load.get("step_memory")
        spans = () if memory is None else memory_course(self._timeline, memory, rank)
        if memory is not None and spans:
            self._parts += self._memory(spans, memory["device_bytes"])
        self._parts += self._axis()

    def svg(self, ranks: Sequence[int]) -> str:
        self._parts += self._keys()
        height = self._y + 8
        title = f"{self._timeline.unit.capitalize()} of {format_seconds(self._timeline.seconds)}"
        what = f"What rank {', '.join(map(str, ranks))} does, and what its memory holds"
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" role="img" '
                'aria-labelledby="title" font-family="system-ui, sans-serif" font-size="12">',
                f'<title id="title">{escape(title)}. {escape(what)}</title>',
                f"<style>{style_sheet()}</style>",
                f'<rect width="{_WIDTH:g}" height="{height:g}" class="card"/>',
                _text(_EDGE, 20, title, ' font-weight="600" font-size="14"'),
                *self._parts,
                "</svg>",
                "",
            )
        )

    def _x(self, seconds: float) -> float:
        return _LEFT + _PLOT * seconds / self._timeline.seconds

    def _bar(self, bar: Bar, rank: int, height: float) -> Iterator[str]:
        start, end = float(bar.start_seconds[rank]), float(bar.end_seconds[rank])
        x, width = self._x(start), max(self._x(end) - self._x(start), 0.5)
        words = bar.name.replace("_", " ")
        if bar.kind in NESTED:
            yield (
                f'<rect x="{x:.2f}" y="{self._y + _ROW:.1f}" width="{width:.2f}" height="{height - _ROW:.1f}" '
                f'class="part"><title>{escape(words)}: {format_seconds(end - start)}</title></rect>'
            )
            return
        name = WAIT if bar.kind is BarKind.WAIT else colour_of(bar.name)
        self._legend.setdefault(name, WAIT_WORDS if name == WAIT else words)
        yield (
            f'<rect x="{x:.2f}" y="{self._y:.1f}" width="{width:.2f}" height="{height:g}" class="{name}">'
            f"<title>{escape(words)}: {format_seconds(end - start)}</title></rect>"
        )
        if width > _LETTER * len(words) + 8:
            yield _text(x + width / 2, self._y + 15, words, f" class='on-{name}'", "middle")

    def _memory(self, spans: Sequence[MemorySpan], device_bytes: float) -> Iterator[str]:
        """Draw what the memory holds, in groups of lines, up to the whole memory of the accelerator."""
        groups = memory_groups(line for span in spans for line in span.start_bytes)
        top, bottom = self._y + 8, self._y + 8 + _MEMORY
        full = device_bytes * 1.02

        def y(amount: float) -> float:
            return bottom - _MEMORY * min(amount / full, 1.0)

        moments = [one for span in spans for one in _ends_of(span)]
        below = [0.0] * len(moments)
        for group in groups:
            lines = [line for line, held in MEMORY_LINES.items() if held == group]
            above = [
                low + sum(held.get(line, 0.0) for line in lines) for low, (_, held) in zip(below, moments, strict=True)
            ]
            if any(high > low for high, low in zip(above, below, strict=True)):
                xs = [self._x(seconds) for seconds, _ in moments]
                upper = [f"{x:.2f},{y(amount):.2f}" for x, amount in zip(xs, above, strict=True)]
                lower = [f"{x:.2f},{y(amount):.2f}" for x, amount in zip(xs, below, strict=True)]
                yield f'<polygon points="{" ".join([*upper, *reversed(lower)])}" class="{group}"/>'
                self._legend.setdefault(group, group.replace("_", " "))
            below = above
        line = y(device_bytes)
        yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{line:.1f}" y2="{line:.1f}" class="limit"/>'
        yield _text(_LEFT - 8, line + 4, format_bytes(device_bytes), " class='faint'", "end")
        peak = max(below)
        if y(peak) - line > 14:
            yield _text(_LEFT - 8, y(peak) + 4, format_bytes(peak), " class='faint'", "end")
            yield f'<line x1="{_LEFT - 4}" x2="{_LEFT}" y1="{y(peak):.1f}" y2="{y(peak):.1f}" class="rule"/>'
        yield _text(_LEFT - 8, bottom, "0 B", " class='faint'", "end")
        yield f'<path d="M{_LEFT},{top:.1f} V{bottom:.1f} H{_WIDTH - _RIGHT}" class="rule" fill="none"/>'
        self._y = bottom

    def _axis(self) -> Iterator[str]:
        step = _round_step(self._timeline.seconds / 6)
        for number in range(int(self._timeline.seconds / step + 1e-9) + 1):
            x = self._x(number * step)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self._y:.1f}" y2="{self._y + 5:.1f}" class="rule"/>'
            yield _text(x, self._y + 19, format_seconds(number * step), " class='faint'", "middle")
        self._y += _AXIS

    def _keys(self) -> Iterator[str]:
        x = _EDGE
        for name, words in self._legend.items():
            needed = 18 + _LETTER * len(words) + 16
            if x + needed > _WIDTH - _EDGE:
                x, self._y = _EDGE, self._y + _LEGEND_ROW
            yield f'<rect x="{x:.1f}" y="{self._y:.1f}" width="12" height="12" class="{name}"/>'
            yield _text(x + 18, self._y + 10.5, words)
            x += needed
        self._y += _LEGEND_ROW


def _ends_of(span: MemorySpan) -> tuple[tuple[float, dict[str, float]], tuple[float, dict[str, float]]]:
    return (span.start_seconds, dict(span.start_bytes)), (span.end_seconds, dict(span.end_bytes))


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, ... times a power of ten that is not less."""
    decade: float = 10.0 ** math.floor(math.log10(least))
    return decade * next(factor for factor in (1, 2, 5, 10) if decade * factor >= least * (1 - 1e-9))


def _text(x: float, y: float, text: str, more: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
