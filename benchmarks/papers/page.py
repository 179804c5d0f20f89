"""The figures of ``docs/paper-studies.md`` and its picture, from what ``examples/studies/compare.py --json`` wrote.

python benchmarks/papers/page.py [--figures benchmarks/measured/paper_studies.json] [--docs docs]
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "benchmarks" / "measured" / "paper_studies.json"
_WIDTH, _HEIGHT, _PANEL = 960, 400, 480
_LEFT, _TOP, _BOTTOM = 60, 50, 70
_OURS, _PAPER = "#4477aa", "#bbbbbb"
_MEMORIES = {"HBM": "#cc6677", "HBM+DDR": "#4477aa", "HBM+DDR+SCM": "#228833", "HBM+DDR+SCM+SSD": "#999933"}
_LEGEND = (0, 60, 150, 270)  # where the names of memories begin
#: Rate of each step of Neo's over that of table_wise only, as the paper has it; None where it does not say.
PAPER_STEPS: Mapping[str, float | None] = {
    "table_wise only": 1.0,
    "all schemes": 1.2,
    "fp16 tables": 1.44,
    "fp16 and bf16 on the wire": None,
    "four times the batch": 1.87,
}

Figures = Mapping[str, Mapping[str, Any]]


def table_of(study: Mapping[str, Any]) -> str:
    """Return the claims of a study as a table of Markdown."""
    rows = [f"| {one['what']} | {one['paper']} | {one['ours']} |" for one in study["claims"]]
    return "\n".join(["| | paper | here |", "| --- | --- | --- |", *rows])


def page(text: str, figures: Figures) -> str:
    """Return the page with the tables of all studies; raises ``KeyError`` if the page has one that is not known."""
    pattern = r"(<!-- figures of (\w+) -->\n)(.*?)(<!-- end of figures -->)"
    return re.sub(pattern, lambda found: f"{found[1]}{table_of(figures[found[2]])}\n{found[4]}", text, flags=re.DOTALL)


def picture(figures: Figures) -> str:
    """Return an SVG: what each step of Neo's brings, and samples per second over hosts by memories."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        ' font-size="12" role="img" aria-label="Steps of Neo, and hosts of MTrainS">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    )
    return "\n".join([*head, *_steps(figures["neo"]["rates"]), *_hosts(figures["mtrains"]["rates"]), "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, **given: object) -> str:
    more = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in given.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(words)}</text>'


def _steps(rates: Mapping[str, float]) -> Iterator[str]:
    first = rates["table_wise only"]
    highest = max(rates.values()) / first * 1.1
    scale = (_HEIGHT - _TOP - _BOTTOM) / highest
    floor = _HEIGHT - _BOTTOM
    step = (_PANEL - _LEFT - 20) / len(PAPER_STEPS)
    yield _text(_LEFT, 24, "Neo, model A: rate over table_wise only", font_weight="bold")
    yield f'<rect x="{_LEFT}" y="32" width="10" height="10" fill="{_OURS}"/>' + _text(_LEFT + 14, 41, "here")
    yield f'<rect x="{_LEFT + 60}" y="32" width="10" height="10" fill="{_PAPER}"/>' + _text(_LEFT + 74, 41, "paper")
    for index, (name, paper) in enumerate(PAPER_STEPS.items()):
        x = _LEFT + index * step
        for offset, value, colour in ((0, rates[name] / first, _OURS), (step * 0.4, paper, _PAPER)):
            if value is not None:
                height = value * scale
                yield (
                    f'<rect x="{x + offset:.1f}" y="{floor - height:.1f}" width="{step * 0.36:.1f}"'
                    f' height="{height:.1f}" fill="{colour}"/>'
                )
                label = f"{value:.2f}"
                yield _text(x + offset + step * 0.18, floor - height - 4, label, text_anchor="middle", font_size=10)
        words = name.split(" ")
        middle = (len(words) + 1) // 2
        for line, part in enumerate((" ".join(words[:middle]), " ".join(words[middle:]))):
            yield _text(x + step * 0.38, floor + 16 + 14 * line, part, text_anchor="middle", font_size=10)


def _hosts(rates: Mapping[str, float]) -> Iterator[str]:
    numbers = sorted({int(key.partition("/")[2]) for key in rates})
    left, floor = _PANEL + _LEFT, _HEIGHT - _BOTTOM
    highest = max(rates.values()) * 1.1
    step = (_WIDTH - left - 40) / (len(numbers) - 1)

    def at(hosts: int, rate: float) -> tuple[float, float]:
        return left + numbers.index(hosts) * step, floor - rate / highest * (floor - _TOP - 30)

    yield _text(left, 24, "MTrainS: samples per second over hosts, 12 TB of tables", font_weight="bold")
    yield f'<line x1="{left}" y1="{floor}" x2="{_WIDTH - 30}" y2="{floor}" stroke="black"/>'
    for hosts in numbers:
        yield _text(at(hosts, 0)[0], floor + 16, str(hosts), text_anchor="middle", font_size=10)
    for index, (memories, colour) in enumerate(_MEMORIES.items()):
        yield _text(left + _LEGEND[index], 41, memories, fill=colour, font_size=10)
        points = [at(hosts, rate) for hosts in numbers if (rate := rates.get(f"{memories}/{hosts}", 0.0))]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)
    for part in (0.25, 0.5, 0.75, 1.0):
        rate = highest / 1.1 * part
        yield _text(left - 6, at(numbers[0], rate)[1] + 4, f"{rate / 1e6:.1f} M", text_anchor="end", font_size=10)
    yield _text((left + _WIDTH) / 2, floor + 36, "hosts of 8 accelerators", text_anchor="middle")


def main(arguments: list[str] | None = None) -> int:
    """Write the figures of the page, and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, default=FIGURES)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    given = parser.parse_args(arguments)
    figures = json.loads(given.figures.read_bytes())
    path = given.docs / "paper-studies.md"
    path.write_text(page(path.read_text(), figures))
    (given.docs / "paper-studies.svg").write_text(picture(figures))
    print(f"{path.name} and paper-studies.svg have the figures of {len(figures)} studies")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
