"""docs/reality.md out of the results of ``benchmarks/reality.py``.

python benchmarks/prices/reality/page.py [--results FILE] [--page FILE]
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[3]
RESULTS, PAGE = _ROOT / "benchmarks" / "measured" / "reality.json", _ROOT / "docs" / "reality.md"

_HEAD = """# Predicted and measured

What the product predicts for public measurements, of which it measured none itself. `make reality` makes the figures
(`benchmarks/measured/reality.json`) and this page of them; the measured rows are not in the repository. An error is
|predicted / measured - 1|. A group counts every row once, also rows that a law or a constant was fitted to
([cost-models.md](cost-models.md) says which).

A **whole step** is MLPerf Training's DLRM-DCNv2 under the plan that HugeCTR ran: as its log printed the plan, else made
again from the submitted settings. The product prices the embeddings, dense compute, its all-reduce and the overhead
([whole step](cost-models.md#whole-step)); one number is of HugeCTR alone, what its backward kernels take of FBGEMM's,
which the product prices (`benchmarks/measured/hugectr.json`). The **sparse step** of a whole step is the part of the
embeddings alone, which must stay below what was measured; its errors say which share of the step is left to the rest.
**Growth with GPUs** is of NVIDIA's synthetic models, whose dense part is not published: each is anchored at its step on
the fewest GPUs, and the predicted change of the embeddings' step is set next to the published change."""


def page_of(results: Mapping[str, Any]) -> str:
    """Return the page of the figures of ``benchmarks/reality.py --results``."""
    parts = (
        _verdicts(results["verdicts"]),
        _groups(results["groups"]),
        _plans(results["plans"]),
        _left_out(results["left_out"]),
    )
    return "\n".join((_HEAD, *(line for part in parts for line in part)))


def _verdicts(lines: Sequence[str]) -> Iterator[str]:
    yield from ("", "## Verdicts", "")
    for line in lines:
        yield f"- {line}"


def _groups(groups: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Groups", "", "| group | rows | mean error | 90% below | largest | median |", "| --- " * 6 + "|")
    for group in groups:
        signed = group["median_signed_error"]
        yield (
            f"| {group['group']} | {group['rows']:,} | {group['mean_relative_error']:.1%} |"
            f" {group['p90_relative_error']:.1%} | {group['largest_relative_error']:.1%} |"
            f" {abs(signed):.1%} too {'slow' if signed > 0 else 'fast'} |"
        )


def _plans(plans: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not plans:
        return
    what = "Predicted whole steps of MLPerf's systems under HugeCTR's plan, the best one of several, and under ours."
    yield from ("", "## Our plans", "", what, "")
    yield from ("| system | batch | HugeCTR's plan | ours |", "| --- | --- | --- | --- |")
    for plan in plans:
        yield (
            f"| {plan['platform']} | {plan['global_batch']:,} | {1e3 * plan['hugectr_seconds']:.2f} ms |"
            f" {1e3 * plan['our_seconds']:.2f} ms |"
        )


def _left_out(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Left out", "", "| file | rows | why |", "| --- | --- | --- |")
    for one in sorted(rows, key=lambda one: (one["file"], one["reason"])):
        yield f"| {one['file']} | {one['rows']:,} | {one['reason']} |"
    yield ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help="figures of benchmarks/reality.py")
    parser.add_argument("--page", type=Path, default=PAGE, help="file to write")
    given = parser.parse_args(arguments)
    page = page_of(json.loads(given.results.read_text(encoding="utf-8")))
    given.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
