"""Run studies of this folder, and set what comes out next to what papers say.

    python examples/studies/compare.py [STUDY ...] [-o DIR] [--server URL] [--json FILE]

Each study is a question (``neo.json``) about a spec; ``shardplan study`` plans its points, and takes up a folder where
it was left. Nothing is fitted to a paper.
"""

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FLEET_REQUESTS_PER_SECOND = 100_000.0
MEMORIES = ("HBM", "HBM+DDR", "HBM+DDR+SCM", "HBM+DDR+SCM+SSD")
TARGETS = (100e3, 400e3, 1e6, 3e6)  # samples per second
P99_LIMITS = (0.00012, 0.00015, 0.0002, 0.0003, 0.0005)  # seconds


@dataclass(frozen=True)
class Point:
    """A point of a study that has ended."""

    state: str
    figures: Mapping[str, Any]
    plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Samples, or requests, per second; 0 without a plan."""
        return float(self.figures.get("samples_per_second") or self.figures.get("requests_per_second") or 0.0)


Points = Mapping[str, Point]


@dataclass(frozen=True)
class Claim:
    """What a paper says, and how the same is read from points."""

    what: str
    paper: str
    ours: Callable[[Points], str]


@dataclass(frozen=True)
class Comparison:
    """A study and what a paper says of its subject."""

    title: str
    spec: str  # path from this folder
    source: str
    claims: Sequence[Claim]


def gain(later: str, earlier: str) -> Callable[[Points], str]:
    """Return how much more a point does per second than another."""
    return lambda points: f"{points[later].rate / points[earlier].rate - 1:+.0%}"


def rate(key: str) -> Callable[[Points], str]:
    """Return what a point does per second, in thousands."""
    return lambda points: f"{points[key].rate / 1e3:,.0f} K/s"


def share(key: str, of: str) -> Callable[[Points], str]:
    """Return the rate of a point as a share of another's."""
    return lambda points: "no plan" if not points[key].rate else f"{points[key].rate / points[of].rate:.0%}"


def state(key: str) -> Callable[[Points], str]:
    """Return whether a point has a plan, and how full its fullest rank is."""

    def text(points: Points) -> str:
        point = points[key]
        if point.state != "planned":
            return point.state.replace("_", " ")
        return f"fits, fullest rank {point.figures['fullest_rank_fraction']:.0%}"

    return text


def per_host(key: str, against: str) -> Callable[[Points], str]:
    """Return how many times as much a host of one point does as a host of another."""

    def text(points: Points) -> str:
        one, other = (points[name].rate / points[name].figures["num_hosts"] for name in (key, against))
        return f"{one / other:.0f}x"

    return text


def reductions(name: str, policies: Sequence[str]) -> Callable[[Points], str]:
    """Return how many times less checkpoints of some policies write or store than full ones in fp32."""

    def text(points: Points) -> str:
        values = [
            point.plan["checkpoint"][name]
            for key, point in points.items()
            if point.plan and any(key.startswith(policy) for policy in policies)
        ]
        return f"{min(values):.1f}-{max(values):.1f}x"

    return text


def fewest_hosts(memories: str, target: float, points: Points) -> float:
    """Return the fewest hosts that reach a rate with some memories; infinite if none of those asked does."""
    reached = [
        float(point.figures["num_hosts"])
        for key, point in points.items()
        if key.startswith(f"{memories}/") and point.rate >= target
    ]
    return min(reached, default=math.inf)


def hosts(target: float) -> Callable[[Points], str]:
    """Return the fewest hosts by memories, and how many times fewer the last ones are than with HBM and DDR."""

    def text(points: Points) -> str:
        fewest = {memories: fewest_hosts(memories, target, points) for memories in MEMORIES}
        listed = " / ".join("-" if math.isinf(one) else f"{one:.0f}" for one in fewest.values())
        return f"{listed}: {fewest['HBM+DDR'] / min(fewest.values()):.1f}x fewer"

    return text


def served(key: str) -> Callable[[Points], str]:
    """Return the rate of a host, and the hosts of a fleet."""

    def text(points: Points) -> str:
        one = points[key]
        if not one.rate:
            return "no plan"
        return f"{one.rate:,.0f}/s a host, {math.ceil(FLEET_REQUESTS_PER_SECOND / one.rate)} hosts"

    return text


NOT_SAID = "not said"
COMPARISONS: dict[str, Comparison] = {
    "neo": Comparison(
        title="Neo: what each step brings",
        spec="models/neo_a.json",
        source="Mudigere et al., ISCA 2022, arXiv 2104.05158; the single steps are recalled, not read again",
        claims=(
            Claim("table_wise only", "under 700 K/s", rate("table_wise only")),
            Claim("all schemes", "about +20%", gain("all schemes", "table_wise only")),
            Claim("fp16 tables", "about +20%", gain("fp16 tables", "all schemes")),
            Claim("fp16 and bf16 on the wire", NOT_SAID, gain("fp16 and bf16 on the wire", "fp16 tables")),
            Claim("four times the batch", "about +20%", gain("four times the batch", "fp16 and bf16 on the wire")),
            Claim("all together", "+87%", gain("four times the batch", "table_wise only")),
        ),
    ),
    "neo_memory": Comparison(
        title="Neo: 12 T parameters on 128 accelerators",
        spec="models/neo_f.json",
        source="Mudigere et al., ISCA 2022, arXiv 2104.05158",
        claims=(
            Claim("fp32, adagrad: 96 TB", "does not fit", state("fp32, adagrad")),
            Claim("fp32, rowwise_adagrad: 48 TB", "does not fit", state("fp32, rowwise_adagrad")),
            Claim("fp16, rowwise_adagrad: 24 TB", "fits", state("fp16, rowwise_adagrad")),
            Claim(
                "a host against a host without accelerators",
                "up to 40x, of whole systems",
                per_host("fp16, rowwise_adagrad", "hosts without accelerators"),
            ),
        ),
    ),
    "schemes": Comparison(
        title="One scheme for all tables, on 32 trainers",
        spec="models/cvr.json",
        source="a commit to TorchRec on hierarchical sharding: 90, 81 to 88, 80 and 62 K/s",
        claims=(
            Claim("table_wise", "100%", share("table_wise", "table_wise")),
            Claim("column_wise", "90% to 98%", share("column_wise", "table_wise")),
            Claim("table_column_wise", "89%", share("table_column_wise", "table_wise")),
            Claim("table_row_wise", NOT_SAID, share("table_row_wise", "table_wise")),
            Claim("row_wise", "69%", share("row_wise", "table_wise")),
            Claim("all schemes", NOT_SAID, share("all schemes", "table_wise")),
        ),
    ),
    "mtrains": Comparison(
        title="MTrainS: hosts by memories, at equal rate",
        spec="models/terabytes.json",
        source="Kassa et al., arXiv 2305.01515, abstract: 4 to 8 times fewer nodes",
        claims=tuple(Claim(f"{target / 1e3:,.0f} K samples/s", "4-8x fewer", hosts(target)) for target in TARGETS),
    ),
    "check_n_run": Comparison(
        title="Check-N-Run: what checkpoints write and store",
        spec="models/checkpointed.json",
        source="Eisenman et al., NSDI 2022, arXiv 2010.08679, abstract",
        claims=(
            Claim(
                "written, 8 to 2 bits",
                "6-17x less",
                reductions("write_reduction", ("one_shot", "consecutive", "intermittent")),
            ),
            Claim(
                "stored, 8 to 2 bits",
                "2.5-8x less",
                reductions("stored_reduction", ("one_shot", "intermittent")),
            ),
            Claim(
                "stored by consecutive ones, 8 to 2 bits", NOT_SAID, reductions("stored_reduction", ("consecutive",))
            ),
        ),
    ),
    "cards": Comparison(
        title="Six inference cards under a limit on the 99th percentile",
        spec="../serving_6card.json",
        source="Anderson et al., arXiv 2107.04140 describes the hosts, and no rates of one model",
        claims=tuple(
            Claim(f"{copies}, {limit * 1e6:.0f} us", NOT_SAID, served(f"{copies}/{limit}"))
            for limit in P99_LIMITS
            for copies in ("one copy", "replicas")
        ),
    ),
}


def run_study(name: str, folder: Path, more: Sequence[str]) -> Points:
    """Plan the points of a study, and return them by their keys."""
    spec = (HERE / COMPARISONS[name].spec).resolve()
    command = ["shardplan", "study", str(HERE / f"{name}.json"), "--spec", str(spec)]
    subprocess.run([*command, "-o", str(folder), *more], check=True)
    return points_of(folder)


def points_of(folder: Path) -> Points:
    """Return the points that a study left in a folder, with their plans."""
    found = {}
    for point in json.loads((folder / "points.json").read_bytes())["points"]:
        plan = folder / "plans" / f"{str(point.get('plan_digest')).replace(':', '-')}.json"
        document = json.loads(plan.read_bytes()) if plan.exists() else {}
        found[point["key"]] = Point(point["state"], point.get("figures") or {}, document)
    return found


def table(name: str, points: Points) -> dict[str, Any]:
    """Return what a paper says next to what comes out."""
    comparison = COMPARISONS[name]
    claims = [{"what": one.what, "paper": one.paper, "ours": one.ours(points)} for one in comparison.claims]
    rates = {key: point.rate for key, point in points.items()}
    return {"title": comparison.title, "source": comparison.source, "claims": claims, "rates": rates}


def text_of(found: Mapping[str, Any]) -> str:
    """Return the table as text."""
    rows = [("", "paper", "here"), *((one["what"], one["paper"], one["ours"]) for one in found["claims"])]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([found["title"], f"  paper: {found['source']}", *(f"  {line}" for line in lines)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the studies that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"of {', '.join(COMPARISONS)}; all of them")
    parser.add_argument("-o", "--output", type=Path, default=Path("studies"), help="folder of points and plans")
    parser.add_argument("--server", metavar="URL", help="let a service plan")
    parser.add_argument("--json", type=Path, help="also write the comparison here")
    given = parser.parse_args(arguments)
    unknown = set(given.studies) - COMPARISONS.keys()
    if unknown:
        parser.error(f"no study of the name {', '.join(sorted(unknown))}; there are {', '.join(COMPARISONS)}")
    more = ["--quiet", *([] if given.server is None else ["--server", given.server])]
    found = {}
    for name in given.studies or COMPARISONS:
        found[name] = table(name, run_study(name, given.output / name, more))
        print(text_of(found[name]), end="\n\n", flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
