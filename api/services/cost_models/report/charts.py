"""The two charts of a model's report as inline SVG, which needs no script, no library and no network.

Colours and fonts are those of the page's style sheet, by class; a chart has a title and a description for those who
do not see it, and all its numbers stand in the page's tables too.
"""

import math
from collections.abc import Sequence
from html import escape

from planner.domain.formats.units import format_seconds

_SIDE = 360.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 88.0, 12.0, 32.0, 56.0
_LABEL, _BAR, _ROW, _VALUE = 150.0, 300.0, 24.0, 66.0


def scatter(name: str, pairs: Sequence[Sequence[float]]) -> str:
    """Draw predicted over measured seconds on logarithmic axes, with the diagonal and the lines of twice and half.

    Parameters
    ----------
    name
        Names the chart, and its parts for screen readers; unique in a page, and safe as an identifier.
    pairs
        Measured and predicted seconds; pairs that are not positive are left out.
    """
    positive = [pair for pair in pairs if min(pair) > 0]
    points = [(math.log10(measured), math.log10(predicted)) for measured, predicted in positive]
    if not points:
        return ""
    values = [value for point in points for value in point]
    low, high = math.floor(min(values)), max(math.ceil(max(values)), math.floor(min(values)) + 1)

    def x(decade: float) -> float:
        return _LEFT + _SIDE * (decade - low) / (high - low)

    def y(decade: float) -> float:
        return _TOP + _SIDE * (high - decade) / (high - low)

    parts = [f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}"/>']
    step = max(1, math.ceil((high - low) / 6))
    for decade in range(low, high + 1, step):
        label = escape(format_seconds(10.0**decade))
        parts.append(_line("grid", x(decade), _TOP, x(decade), _TOP + _SIDE))
        parts.append(_line("grid", _LEFT, y(decade), _LEFT + _SIDE, y(decade)))
        parts.append(_text(x(decade), _TOP + _SIDE + 22, label, "middle"))
        parts.append(_text(_LEFT - 6, y(decade) + 4, label, "end"))
    twice = math.log10(2)
    parts.append(_line("even", x(low), y(low), x(high), y(high)))
    parts.append(_line("twice", x(low), y(low + twice), x(high - twice), y(high)))
    parts.append(_line("twice", x(low + twice), y(low), x(high), y(high - twice)))
    parts += [f'<circle class="point" cx="{x(a):.1f}" cy="{y(b):.1f}" r="2.5"/>' for a, b in points]
    parts.append(_text(_LEFT + _SIDE / 2, _TOP + _SIDE + 46, "measured", "middle"))
    middle = _TOP + _SIDE / 2
    parts.append(f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">predicted</text>')
    beyond = sum(abs(b - a) > twice for a, b in points)
    least, most = (format_seconds(10**value) for value in (min(values), max(values)))
    caption = (
        f"{len(points)} held-out points from {least} to {most}, {beyond} of them beyond the lines of half and twice."
    )
    return _svg(
        name, "Predicted against measured seconds", caption, _LEFT + _SIDE + _RIGHT, _TOP + _SIDE + _BOTTOM, parts
    )


def bars(name: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """Draw a bar for the mean error of each row (label, mean, median), with a tick at its median."""
    if not rows:
        return ""
    full = max(max(mean, median) for _, mean, median in rows) or 1.0
    parts = []
    for i, (label, mean, median) in enumerate(rows):
        top, end = i * _ROW, _LABEL + _BAR * median / full
        parts.append(_text(_LABEL - 6, top + 16, escape(label), "end"))
        parts.append(f'<rect class="bar" x="{_LABEL}" y="{top + 5:.1f}" width="{_BAR * mean / full:.1f}" height="14"/>')
        parts.append(_line("median", end, top + 2, end, top + 22))
        parts.append(_text(_LABEL + _BAR * max(mean, median) / full + 6, top + 16, f"{mean:.1%}", "start"))
    means = [mean for _, mean, _ in rows]
    caption = f"Mean errors of {len(rows)} groups from {min(means):.1%} to {max(means):.1%}."
    title = "Mean error by size; a line marks the median"
    return _svg(name, title, caption, _LABEL + _BAR + _VALUE, len(rows) * _ROW, parts)


def _svg(name: str, title: str, caption: str, width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f'<figure><svg role="img" aria-labelledby="{name}-title {name}-desc" viewBox="0 0 {width:.0f} {height:.0f}">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(caption)}</desc>'
        f"{''.join(parts)}</svg><figcaption>{escape(title)}. {escape(caption)}</figcaption></figure>"
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'
