"""Names of tables and features: each stands once in its module or table, and groups use names of tables that exist."""

from collections import Counter

from api.specs.input.json import quoted
from api.specs.issues import IssueCollector
from api.specs.state import GroupKind, SpecState

MAX_TOTAL_NAME_LENGTH = 4 * 1024**2


def check_names(state: SpecState, issues: IssueCollector) -> None:
    """Report names that stand twice, also those of tables that could not be read otherwise."""
    first: dict[str, int] = {}
    for number, name in enumerate(state.originals.table_names):
        if name is not None and first.setdefault(name, number) != number:
            issues.report(
                f"/model/tables/{number}/name",
                f"table {quoted(name)} is also table number {first[name]} (counted from 0)",
                "give every table of a module its own name, and tables of other modules their module_path",
                code="duplicate-name",
            )
    total = sum(len(name) for name in state.originals.table_names if name is not None)
    for where, table in state.written_tables():
        seen: set[str] = set()
        for number, feature in enumerate(table.features or ()):
            total += len(feature.name)
            if feature.name in seen:
                issues.report(
                    f"{where}/features/{number}/name",
                    f"feature {quoted(feature.name)} stands twice in this table",
                    "name every feature of a table once",
                    code="duplicate-name",
                )
            seen.add(feature.name)
    if total > MAX_TOTAL_NAME_LENGTH:
        issues.report(
            "/model/tables",
            f"names are {total} characters in all, and at most {MAX_TOTAL_NAME_LENGTH} are taken",
            "shorten the names",
        )


def check_groups(state: SpecState, issues: IssueCollector) -> None:
    """Report what is wrong with groups of tables."""
    known = set(state.originals.table_names)
    group_of: dict[str, int] = {}
    for number, group in state.groups("same_rank"):
        _check_members("same_rank", number, group, known, issues)
        for name in group:
            if group_of.setdefault(name, number) != number:
                message = f"{quoted(name)} is also in group {group_of[name]}"
                issues.report(f"/constraints/same_rank/{number}", message, "merge the two groups")
    for number, group in state.groups("apart"):
        _check_members("apart", number, group, known, issues)
        together = Counter(group_of[name] for name in set(group) if name in group_of)
        for other, count in together.items():
            if count > 1:
                issues.report(
                    f"/constraints/apart/{number}",
                    f"{count} of these tables must share a rank by same_rank group {other}",
                    "take them out of one of the two groups",
                )


def _check_members(
    kind: GroupKind, number: int, group: list[str], known: set[str | None], issues: IssueCollector
) -> None:
    where = f"/constraints/{kind}/{number}"
    for position, name in enumerate(group):
        if name not in known and None not in known:  # it may be the name that cannot be read
            alike = sorted(one for one in known if one is not None and one.endswith(f"/{name}"))
            if alike:
                message, hint = f"{len(alike)} modules have a table {quoted(name)}", f"write {' or '.join(alike[:3])}"
            else:
                message, hint = f"no table {quoted(name)}", "name a table of the spec"
            issues.report(f"{where}/{position}", message, hint)
    for name, count in Counter(group).items():
        if count > 1:
            issues.report(where, f"{quoted(name)} stands {count} times in the group", "name it once")
