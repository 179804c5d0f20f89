"""What a study found, for people; fronts are in the table of its points."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_seconds


def answer_lines(kind: str, answer: Mapping[str, Any], *, currency: str) -> list[str]:
    """Return sentences on the answer of a study."""
    lines = _LINES.get(kind)
    return [] if lines is None else list(lines(answer, currency))


def _fleet_lines(answer: Mapping[str, Any], currency: str) -> Iterator[str]:
    for one in answer["machines"]:
        of = "" if one["machine"] == "own" else f"{one['machine']}: "
        fewest, least = one["fewest_hosts"], one["at_least_hosts"]
        if fewest is None:
            known = (
                "no number of hosts reaches the target, proven" if one["is_proven"] else "no plan reaches the target"
            )
            bound = "" if least is None else f"; the bounds leave room from {counted(least, 'host')} on"
            yield f"{of}{known}{bound}."
            continue
        price = one["price_per_hour"]
        costs = "" if price is None else f", {price:,.2f} {currency} an hour"
        if one["is_proven"]:
            reach = "reaches" if fewest == 1 else "reach"
            yield f"{of}{counted(fewest, 'host')} {reach} the target{costs}; fewer do not, proven."
        else:
            open_hosts = ", ".join(str(number) for number in one["undecided_hosts"])
            yield (
                f"{of}at least {counted(least, 'host')}, proven; {fewest} have a plan that reaches the target{costs}."
                f" Not decided: {open_hosts}."
            )
    cheapest = answer["cheapest"]
    if cheapest is not None and len(answer["machines"]) > 1:
        proof = "no other machine is cheaper, proven" if cheapest["is_proven"] else "not proven"
        yield f"The cheapest: {cheapest['machine']}, {cheapest['price_per_hour']:,.2f} {currency} an hour ({proof})."


def _jobs_lines(answer: Mapping[str, Any], _currency: str) -> Iterator[str]:
    for job in answer["jobs"]:
        if job["key"] is None:
            yield f"{job['job']}: no hosts.{_target(job)}"
        else:
            places = ", ".join(_place(place) for place in job["places"])
            yield f"{job['job']}: {places}; {job['samples_per_second']:,.0f} samples/s.{_target(job)}"
    met, most = answer["num_targets_met"], answer["most_targets_met"]
    if any(job["needed_samples_per_second"] is not None for job in answer["jobs"]):
        proof = "no allocation meets more, proven" if met == most else f"{most} by the bounds"
        yield f"{counted(met, 'target')} met ({proof}); {counted(answer['free_ranks'], 'rank')} free."
    else:
        yield f"{counted(answer['free_ranks'], 'rank')} free."


def _scenarios_lines(answer: Mapping[str, Any], _currency: str) -> Iterator[str]:
    plan, mean = answer["plan"], answer["plan_of_mean"]
    if plan is None:
        yield "No plan fits in enough of the scenarios."
        return
    objective, measure = answer["objective"], answer["measure"]
    name = "worst" if objective == "worst" else f"{objective['quantile']:g} quantile"
    shown = format_seconds if measure == "step_seconds" else "{:.3f} of its own best".format
    bound, gap = answer["lower_bound"], answer["relative_gap"]
    known = "" if bound is None else f"; no plan is below {shown(bound)}" + ("" if gap is None else f", gap {gap:.1%}")
    yield f"{plan['key']}: {name} {shown(plan['cost'])}{known}. {_most(plan)}"
    if mean is not None and mean["cost"] is not None:
        yield f"mean: {name} {shown(mean['cost'])}. {_most(mean)}"
    for one in answer["scenarios"]:
        yield _scenario(one)


def _most(plan: Mapping[str, Any]) -> str:
    ratio = plan["most_ratio_to_own"]
    return "" if ratio is None else f"At most {ratio:.3f} of each own best."


def _scenario(one: Mapping[str, Any]) -> str:
    if one["seconds"] is None or one["ratio_to_own"] is None:
        return f"{one['label']}: no plan of its own."
    mean = "" if one["mean_ratio_to_own"] is None else f" (mean {one['mean_ratio_to_own']:.3f})"
    issue = f" Does not fit: {one['issue']}." if one["issue"] else ""
    replan, pays = one["replan"], ""
    if replan is not None and replan["break_even_steps"] is not None:
        pays = f" Replanning pays after {counted(replan['break_even_steps'], 'step')}."
    step = f"{format_seconds(one['seconds'])}, {one['ratio_to_own']:.3f} of its own best{mean}"
    return f"{one['label']}: {step}.{pays}{issue}"


def _target(job: Mapping[str, Any]) -> str:
    needed = job["needed_samples_per_second"]
    if needed is None:
        return ""
    if job["meets_target"]:
        return f" Meets its target of {needed:,.0f}."
    out_of_reach = "" if job["can_meet_target"] else " on any of its clusters, proven"
    return f" Misses its target of {needed:,.0f}{out_of_reach}."


def _place(place: Mapping[str, Any]) -> str:
    first, last = place["first_host"], place["last_host"]
    hosts = f"host {first}" if first == last else f"hosts {first}-{last}"
    return f"{hosts} (ranks {place['first_rank']}-{place['first_rank'] + place['num_ranks'] - 1})"


_LINES: Mapping[str, Callable[[Mapping[str, Any], str], Iterator[str]]] = {
    "smallest_fleet": _fleet_lines,
    "jobs": _jobs_lines,
    "scenarios": _scenarios_lines,
}
