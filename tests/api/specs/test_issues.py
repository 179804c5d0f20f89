"""One collector of issues: one mistake is one issue, and what follows from a mistake is none."""

import pytest

from api.specs.input.json import MAX_ISSUES, RejectedDocument
from api.specs.issues import IssueCollector
from planner.errors import Issue


def rejection(issues: IssueCollector) -> RejectedDocument:
    with pytest.raises(RejectedDocument) as caught:
        issues.raise_if_any()
    return caught.value


def pointers(issues: IssueCollector) -> list[str]:
    return [issue.pointer for issue in rejection(issues).issues]


def test_without_issues_nothing_is_raised_and_everything_is_sound() -> None:
    issues = IssueCollector()
    issues.raise_if_any()
    assert issues.is_sound("", "/a", "/a/0")


def test_issues_stay_in_order_below_the_base() -> None:
    issues = IssueCollector("/spec")
    issues.report("/b", "no", "yes")
    issues.add(Issue(code="odd", pointer="/a/0", message="no", hint="yes"))
    issues.add_beyond(Issue(code="plan", pointer="/plan", message="no", hint="yes"))
    assert pointers(issues) == ["/spec/b", "/spec/a/0", "/plan"]
    assert [issue.code for issue in rejection(issues).issues] == ["invalid-value", "odd", "plan"]


def test_nothing_is_reported_at_or_below_a_broken_value() -> None:
    issues = IssueCollector()
    issues.report("/a/0", "no", "yes")
    issues.report("/a/0", "no", "yes")
    issues.report("/a/0/b", "no", "yes")
    issues.report("/a/01", "no", "yes")  # another item, whatever its text starts with
    issues.report("/a", "no", "yes")
    assert pointers(issues) == ["/a/0", "/a/01", "/a"]


def test_a_rule_that_reads_a_broken_value_says_nothing() -> None:
    issues = IssueCollector()
    issues.mark_broken("/a/b")
    for read in ("/a/b", "/a", "/a/b/c"):  # the value itself, what holds it, a part of it
        assert not issues.is_sound(read)
        issues.report("/x", "no", "yes", reads=("/y", read))
    issues.report("/x", "no", "yes", reads=("/a/c", "/b"))
    assert pointers(issues) == ["/x"]


def test_an_unknown_field_breaks_no_value() -> None:
    issues = IssueCollector()
    issues.add_unknown_field(Issue(code="unknown-field", pointer="/a", message="no", hint="yes"))
    issues.report("/a/b", "no", "yes")
    assert pointers(issues) == ["/a", "/a/b"]


def test_the_first_fifty_are_shown_and_all_are_counted() -> None:
    issues = IssueCollector()
    for number in range(MAX_ISSUES + 10):
        issues.report(f"/{number}", "no", "yes")
    assert rejection(issues).num_issues == MAX_ISSUES + 10
    assert pointers(issues) == [f"/{number}" for number in range(MAX_ISSUES)]
