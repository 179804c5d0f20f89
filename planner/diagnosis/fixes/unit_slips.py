"""Memory as it was probably meant, where a stated number of bytes looks like a number of GB."""

from collections.abc import Iterable
from dataclasses import replace

from cost_models.hardware.usual_numbers import intended_value, is_unlikely, usual_range
from cost_models.vocabulary import Evidence, Tier
from planner.diagnosis.fixes.ladder import Ladder, Step
from planner.domain.formats.units import format_bytes
from planner.domain.plan.diagnosis import SpecChange
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.problem import Problem

_OVERRIDES = "/hardware/overrides"
_BY_RANK = "hbm_bytes_by_rank"


def unit_slip_ladder(problem: Problem) -> Ladder | None:
    """Take every stated memory that is far too small in the unit that was probably meant; ``None`` if none is.

    It is one step, and the first one to try: a slip leaves no plan whatever else is changed.
    """
    cluster = problem.cluster
    slips: list[tuple[str, list[float], tuple[float, ...]]] = []
    for tier in Tier:
        name = f"{tier.label}_bytes"
        number = cluster.hardware.numbers.get(name)
        if number is None or number.evidence is not Evidence.GIVEN:
            continue
        (meant,) = _meant(cluster, name, [number.value])
        if meant > number.value:
            cluster = replace(cluster, hardware=cluster.hardware.with_overrides({name: meant}, {name: "bytes"}))
            slips.append((name, [number.value], (meant,)))
    if cluster.hbm_bytes_by_rank is not None:
        meant_by_rank = _meant(cluster, "hbm_bytes", cluster.hbm_bytes_by_rank)
        if meant_by_rank != cluster.hbm_bytes_by_rank:
            slips.append((_BY_RANK, list(cluster.hbm_bytes_by_rank), meant_by_rank))
            cluster = replace(cluster, hbm_bytes_by_rank=meant_by_rank)
    if not slips:
        return None
    step = Step(
        problem=replace(problem, cluster=cluster),
        message="; ".join(
            f"hardware.overrides.{name} of {min(stated):g} bytes looks like a slip of units: state"
            f" {format_bytes(max(meant))} if that is meant"
            for name, stated, meant in slips
        ),
        changes=tuple(
            SpecChange(
                pointer=f"{_OVERRIDES}/{name}",
                value=tuple(map(round, meant)) if name == _BY_RANK else round(meant[0]),
            )
            for name, _, meant in slips
        ),
    )
    return Ladder(kind="memory", num_steps=1, step=lambda _: step, guess=1)


def _meant(cluster: Cluster, name: str, stated: Iterable[float]) -> tuple[float, ...]:
    """Return numbers of bytes as they were probably meant: as stated, unless they are far too small."""
    usual = usual_range(cluster.hardware.profile, name)
    found = []
    for value in stated:
        is_slip = usual is not None and value < usual.least and is_unlikely(value, usual)
        found.append((intended_value(value, usual) if is_slip and usual is not None else None) or value)
    return tuple(found)
