"""Bars, columns and wrapped lists for an 80-column terminal."""

import textwrap
from collections.abc import Sequence

WIDTH = 80
INDENT = "  "
DIGEST_DIGITS = 12  # hexadecimal digits of a digest that people are shown
_NO_BREAK = "\N{NO-BREAK SPACE}"


def stacked_bar(parts: Sequence[tuple[str, float]], full: float, width: int) -> str:
    """Draw ``parts`` (one glyph and one amount each) end to end on a scale where ``full`` fills ``width``.

    Ends are rounded, not lengths, so the bar's length is right whatever the number of parts.
    """
    if full <= 0:
        return " " * width
    drawn, end = "", 0.0
    for glyph, amount in parts:
        end += amount
        drawn += glyph * (round(end / full * width) - len(drawn))
    return drawn[:width].ljust(width)


def columns(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    """Align ``rows`` (the first one is the heading); columns named in ``left`` are flush left.

    The first column, which holds names, is cut where the lines would be wider than the terminal.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    too_wide = len(INDENT) + sum(widths) + 2 * (len(widths) - 1) - WIDTH
    widths[0] -= max(0, too_wide)
    return [
        (
            INDENT
            + "  ".join(
                cell.ljust(width) if i in left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip((shortened(row[0], widths[0]), *row[1:]), widths, strict=True))
            )
        ).rstrip()
        for row in rows
    ]


def wrapped(entries: Sequence[str], *, label: str, is_heading: bool = False) -> list[str]:
    """Join ``entries`` with commas after ``label``; a line ends between entries, not within short ones.

    Further lines stand under the first entry, or are indented where the label is a heading.
    """
    head = f"{label} " if is_heading else f"{INDENT}{label} "
    unbroken = [entry.replace(" ", _NO_BREAK) if len(entry) <= WIDTH // 2 else entry for entry in entries]
    under = INDENT if is_heading else " " * len(head)
    lines = textwrap.wrap(
        ", ".join(unbroken), WIDTH, initial_indent=head, subsequent_indent=under, break_on_hyphens=False
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def paragraph(words: str, *, indent: str = INDENT, hanging: str = "") -> list[str]:
    """Wrap a sentence; its further lines are indented by ``hanging`` more."""
    return textwrap.wrap(
        words, WIDTH, initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False
    )


def shortened(words: str, width: int) -> str:
    """Cut ``words`` to ``width`` characters, with an ellipsis where something was cut."""
    return words if len(words) <= width else words[: width - 1] + "…"


def short_digest(digest: str) -> str:
    """``"sha256:0123456789ab…"``: enough for people to distinguish two digests; documents have all of it."""
    return shortened(digest, len("sha256:") + DIGEST_DIGITS + 1)
