"""What is wrong with a spec: every stage of its reading reports to one collector, which answers once."""

from itertools import accumulate

from api.specs.input.json import MAX_ISSUES, RejectedDocument
from planner.errors import Issue


class IssueCollector:
    """Collects the issues of a spec, so that one mistake is one issue and all mistakes are in one answer.

    An issue breaks the value at its pointer: nothing more is reported at that pointer or below. A rule that reads other
    values names them (``reads``), and is not reported while one of them is broken: it may hold once the value is
    corrected. Pointers are relative to the spec; ``base`` is where the spec stands in the document.
    """

    def __init__(self, base: str = "") -> None:
        self.base = base
        self._shown: list[Issue] = []  # the first MAX_ISSUES
        self.num_issues = 0  # shown or not
        self._broken: set[str] = set()
        self._has_broken: set[str] = set()  # pointers at or above a broken one

    def report(
        self, pointer: str, message: str, hint: str, *, code: str = "invalid-value", reads: tuple[str, ...] = ()
    ) -> None:
        """Add the issue of a rule that the value at ``pointer`` breaks."""
        self.add(Issue(code=code, pointer=pointer, message=message, hint=hint), reads=reads)

    def add(self, issue: Issue, *, reads: tuple[str, ...] = ()) -> None:
        """Add an issue, unless it lies at or below a broken value or its rule reads one."""
        if not self._is_below_broken(issue.pointer) and self.is_sound(*reads):
            self.add_beyond(issue.below(self.base))
            self.mark_broken(issue.pointer)

    def add_unknown_field(self, issue: Issue) -> None:
        """Add an issue that breaks no value: of a field that does not exist."""
        if not self._is_below_broken(issue.pointer):
            self.add_beyond(issue.below(self.base))

    def add_beyond(self, issue: Issue) -> None:
        """Add an issue of the document around the spec; its pointer is that of the document."""
        self.num_issues += 1
        if len(self._shown) < MAX_ISSUES:
            self._shown.append(issue)

    def mark_broken(self, pointer: str) -> None:
        """Note that the value at a pointer is not known: rules that read it say nothing."""
        self._broken.add(pointer)
        self._has_broken.update(_with_parents(pointer))

    def is_sound(self, *pointers: str) -> bool:
        """Whether no value at, above or below the pointers is broken."""
        if not self._broken:
            return True
        return not any(pointer in self._has_broken or self._is_below_broken(pointer) for pointer in pointers)

    def raise_if_any(self) -> None:
        """Raise ``RejectedDocument`` with the first issues and the number of all, if there are any."""
        if self.num_issues:
            raise RejectedDocument(self._shown, self.num_issues)

    def _is_below_broken(self, pointer: str) -> bool:
        """Whether the value at a pointer, or one that holds it, is broken."""
        return bool(self._broken) and not self._broken.isdisjoint(_with_parents(pointer))


def _with_parents(pointer: str) -> list[str]:
    """Return a pointer and the pointers above it: of /a/0 these are "", /a and /a/0."""
    return list(accumulate(pointer.split("/"), "{}/{}".format))
