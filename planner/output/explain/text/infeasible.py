"""Why there is no plan, as text for people: what is short, by how much, what is in conflict, and the ways out."""

from collections.abc import Sequence

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes
from planner.domain.plan.diagnosis import Conflict, Diagnosis, Fix, SpecChange
from planner.domain.plan.plan import PlanResult, Shortfall
from planner.output.explain.text.layout import WIDTH, paragraph, shortened

MAX_SHORTFALLS = 10
MAX_CONSTRAINTS = 10  # of a conflict
MAX_CHANGES = 4  # of a fix
_VALUE_WIDTH = 48


def explain_no_plan(result: PlanResult, *, name: str) -> str:
    """Return the reason why ``result`` carries no plan, at most 80 columns wide."""
    limit = f" (stopped by {result.limit})" if result.limit else ""
    lines = [shortened(f"No plan of {name}: {result.reason}{limit}", WIDTH)]
    lines += paragraph(_after_shortfalls(result))
    has_fixes = result.diagnosis is not None and bool(result.diagnosis.fixes)  # which the hints repeat
    lines += _shortfalls(result.shortfalls, with_hints=not has_fixes)
    if result.diagnosis is not None:
        lines += _diagnosis(result.diagnosis)
    return "\n".join(lines) + "\n"


def _after_shortfalls(result: PlanResult) -> str:
    """What ``detail`` says that no shortfall below says again; it may begin with the message of one."""
    detail = result.detail
    for shortfall in result.shortfalls:
        detail = detail.removeprefix(shortfall.message)
    return detail.lstrip("; ")


def _shortfalls(shortfalls: Sequence[Shortfall], *, with_hints: bool) -> list[str]:
    lines: list[str] = []
    for shortfall in shortfalls[:MAX_SHORTFALLS]:
        lines += ["", *paragraph(_heading(shortfall)), *paragraph(shortfall.message, indent="    ")]
        if shortfall.hint and with_hints:
            lines += paragraph(f"way out: {shortfall.hint}", indent="    ")
    if len(shortfalls) > MAX_SHORTFALLS:
        lines += ["", f"  ... and {counted(len(shortfalls) - MAX_SHORTFALLS, 'more shortfall')}"]
    return lines


def _heading(shortfall: Shortfall) -> str:
    """What is short, and by how much: the message below says how that comes about."""
    where = f'table "{shortened(shortfall.table, 40)}"' if shortfall.table else f"the {shortfall.scope}"
    missing = shortfall.required_bytes - shortfall.available_bytes
    if missing > 0:
        return f"{format_bytes(missing)} of {shortfall.resource} short for {where}"
    return f"{shortfall.resource} of {where}" if shortfall.table else shortfall.resource


def _diagnosis(diagnosis: Diagnosis) -> list[str]:
    lines: list[str] = []
    if diagnosis.conflict is not None:
        lines += _conflict(diagnosis.conflict)
    elif diagnosis.has_plan_without_constraints is False:
        lines += ["", *paragraph("no constraint of the spec is to blame: without any, no plan was found either")]
    elif diagnosis.has_plan_without_constraints:
        lines += ["", *paragraph("without any constraint of the spec there is a plan; which to blame was not settled")]
    if diagnosis.fixes:
        lines += ["", *paragraph("fixes, each solved and its plan verified, those that change least first:")]
    for number, fix in enumerate(diagnosis.fixes, start=1):
        lines += _fix(number, fix)
    if diagnosis.limit is not None:
        solves = counted(diagnosis.num_solves, "solve")
        lines += ["", *paragraph(f"more fixes, and smaller ones, may exist: {solves} took what may be spent on them")]
    return lines


def _conflict(conflict: Conflict) -> list[str]:
    if not conflict.is_irreducible:
        what = "these constraints leave no plan" if conflict.is_proven else "with these no plan was found"
        what += "; which of them are needed for that was not settled"
    elif len(conflict.constraints) == 1:
        what = "this constraint leaves no plan" if conflict.is_proven else "with this constraint no plan was found"
        what += ", whatever else is asked for"
    else:
        what = (
            "these constraints leave no plan together" if conflict.is_proven else "with all of these no plan was found"
        )
        what += "; without any one of them, and if nothing else is asked for, there is one"
    lines = ["", *paragraph(f"{what}:")]
    for constraint in conflict.constraints[:MAX_CONSTRAINTS]:
        lines += paragraph(constraint.message, indent="    ")
        lines += paragraph(constraint.pointer, indent="      ")
    if len(conflict.constraints) > MAX_CONSTRAINTS:
        lines.append(f"    ... and {counted(len(conflict.constraints) - MAX_CONSTRAINTS, 'more constraint')}")
    return lines


def _fix(number: int, fix: Fix) -> list[str]:
    lines = paragraph(f"{number}. {fix.message}", indent="    ")
    for change in fix.changes[:MAX_CHANGES]:
        lines += paragraph(_change(change), indent="       ")
    if len(fix.changes) > MAX_CHANGES:
        lines.append(f"       ... and {counted(len(fix.changes) - MAX_CHANGES, 'more change')}")
    used, capacity = format_bytes(fix.plan.used_bytes), format_bytes(fix.plan.capacity_bytes)
    fullest = f"{fix.plan.fullest_rank_fraction:.1%}"
    return lines + paragraph(
        f"its plan takes {used} of the ranks' own {capacity}, {fullest} of the fullest", indent="       "
    )


def _change(change: SpecChange) -> str:
    value = change.value
    becomes = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"{change.pointer}: {'leave out' if value is None else shortened(becomes, _VALUE_WIDTH)}"
