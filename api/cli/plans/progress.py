"""The line that shows on a terminal how far a search is: best plan, bound, gap, elapsed time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from planner.domain.formats.units import format_seconds

_REFRESHES_PER_SECOND = 4


class SearchProgress:
    """What is known of a search; renders itself whenever the terminal is refreshed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_seconds = clock()
        self._state = "searching"
        self._found = "no plan yet"

    def update(
        self, incumbent_seconds: float, bound_seconds: float, relative_gap: float | None, *, found_by: str = ""
    ) -> None:
        """Take the objective of the best plan so far, what no plan is better than, and the gap between them."""
        bound = f"bound {format_seconds(bound_seconds)}" if bound_seconds > 0 else "no bound yet"
        gap = "" if relative_gap is None else f"   gap {relative_gap:.2%}"
        self._found = f"best {format_seconds(incumbent_seconds)}   {bound}{gap}" + (
            f"   {found_by}" if found_by else ""
        )

    def set_state(self, state: str) -> None:
        """Take what the search is doing, in a word."""
        self._state = state

    def __rich__(self) -> Text:
        """Return the line as of now; it is cut where the terminal ends."""
        elapsed = self._clock() - self._began_seconds
        return Text(f"{self._state} {elapsed:5.1f} s   {self._found}", no_wrap=True, overflow="ellipsis")


@contextmanager
def search_progress(*, is_quiet: bool) -> Iterator[SearchProgress]:
    """Yield the progress of a search, shown on stderr if that is a terminal, and gone when the search ends."""
    progress = SearchProgress()
    console = Console(stderr=True, markup=False)
    if is_quiet or not console.is_terminal:
        yield progress
        return
    # What goes to standard output is for programs, and does not pass through the terminal of the line.
    with Live(
        progress,
        console=console,
        transient=True,
        refresh_per_second=_REFRESHES_PER_SECOND,
        redirect_stdout=False,
    ):
        yield progress
