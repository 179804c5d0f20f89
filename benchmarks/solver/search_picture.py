"""The picture of a search: excess over the lower bound against the work that is spent, one line per run of a chain."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 960, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 50, 60
#: Colour of each stage, and what the picture says of it.
STAGES = {
    "race": ("#4477aa", "first plans race"),
    "anneal": ("#cc6677", "the best are heated, cut again and cooled"),
    "refine": ("#228833", "the best is refined"),
    "repair": ("#999933", "bytes are made to fit"),
}
_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)  # per cent above the bound
_MOST_EXCESS = 2.0  # what is further above the bound is cut off
_FEWEST = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A look at a chain after a chunk of proposals."""

    work_fraction: float  # of the whole search
    chain: int  # counted from 0, in the order in which chains first run
    run: int  # of a chain through a stage, counted from 0 in the order in which these begin
    stage: str  # "race", "anneal", "refine" or "repair"
    objective_seconds: float  # of the chain's current state, also if it exceeds the memory
    best_seconds: float  # of the best plan that the chain has seen; infinite without one


class _Axes:
    def __init__(self, looks: Sequence[Look], bound_seconds: float) -> None:
        self._bound_seconds = bound_seconds
        excesses = [self.excess(look.objective_seconds) for look in looks]
        self.lowest = min(excesses) / 1.3
        self.highest = min(max(excesses) * 1.1, _MOST_EXCESS)

    def excess(self, seconds: float) -> float:
        return max(seconds / self._bound_seconds - 1, _FEWEST)

    def x(self, work_fraction: float) -> float:
        return _LEFT + work_fraction * (_WIDTH - _LEFT - _RIGHT)

    def y(self, excess: float) -> float:
        part = math.log(min(excess, self.highest) / self.lowest) / math.log(self.highest / self.lowest)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)

    def point(self, work_fraction: float, seconds: float) -> str:
        return f"{self.x(work_fraction):.1f},{self.y(self.excess(seconds)):.1f}"


def picture(looks: Sequence[Look], bound_seconds: float) -> str:
    """Return an SVG of the looks, which are in the order of the work; the y axis is logarithmic."""
    axes = _Axes(looks, bound_seconds)
    lines = (*_frame(axes), *_stages(looks, axes), *_chains(looks, axes), *_best(looks, axes))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="13">'
    )
    return "\n".join((head, f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>', *lines, "</svg>", ""))


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _frame(axes: _Axes) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    for percent in _TICKS:
        if axes.lowest <= percent / 100 <= axes.highest:
            y = axes.y(percent / 100)
            yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>'
            yield _text(_LEFT - 8, y + 4, f"{percent:g}%", "end")
    for tenths in range(0, 11, 2):
        yield _text(axes.x(tenths / 10), bottom + 20, f"{tenths * 10}%")
    yield _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 15, "work spent")
    turned = f' transform="rotate(-90 18 {(_TOP + bottom) / 2:.1f})"'
    yield _text(18, (_TOP + bottom) / 2, "step time above the lower bound", more=turned)
    yield f'<path d="M{_LEFT},{_TOP} V{bottom} H{_WIDTH - _RIGHT}" fill="none" stroke="black"/>'


def _stages(looks: Sequence[Look], axes: _Axes) -> Iterator[str]:
    """Name each stage above the part of the work that it takes."""
    began = 0.0
    for stage, group in itertools.groupby(looks, key=lambda look: look.stage):
        ended = list(group)[-1].work_fraction
        if ended - began > 0.1:
            colour, words = STAGES[stage]
            fill = f' fill="{colour}" font-weight="bold"'
            yield _text(axes.x((began + ended) / 2), _TOP - 20, words, more=fill)
            yield f'<line x1="{axes.x(ended):.1f}" x2="{axes.x(ended):.1f}" y1="{_TOP - 35}" ' + (
                f'y2="{_HEIGHT - _BOTTOM}" stroke="#888888" stroke-dasharray="4 4"/>'
            )
        began = ended


def _chains(looks: Sequence[Look], axes: _Axes) -> Iterator[str]:
    by_run = sorted(looks, key=lambda look: look.run)  # several run at a time
    for (_, stage), group in itertools.groupby(by_run, key=lambda look: (look.run, look.stage)):
        points = " ".join(axes.point(look.work_fraction, look.objective_seconds) for look in group)
        yield f'<polyline points="{points}" fill="none" stroke="{STAGES[stage][0]}" stroke-width="1.2"/>'


def _best(looks: Sequence[Look], axes: _Axes) -> Iterator[str]:
    best, points = math.inf, []
    for look in looks:
        if look.best_seconds < best:
            if points:
                points.append(axes.point(look.work_fraction, best))
            best = look.best_seconds
            points.append(axes.point(look.work_fraction, best))
    if points:
        points.append(axes.point(1.0, best))
        yield f'<polyline points="{" ".join(points)}" fill="none" stroke="black" stroke-width="2.5"/>'
        yield _text(_WIDTH - _RIGHT, axes.y(axes.excess(best)) + 18, "best plan so far", "end")
