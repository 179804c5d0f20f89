"""Names that are none of those that are known: which of these may be meant."""

import difflib
import re
from collections.abc import Iterable, Sequence

#: Longer texts are cut before they are compared with names, which takes time.
_MAX_COMPARED_LENGTH = 80
#: Shorter words are in too many names.
_LEAST_WORD_LENGTH = 3
_MOST_NAMED = 3
_BETWEEN_WORDS = re.compile(r"[^a-z0-9]+")


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that a name may stand for: those with it or a word of it, then those alike."""
    folded = name[:_MAX_COMPARED_LENGTH].casefold()
    words = {word for word in _BETWEEN_WORDS.split(folded) if len(word) >= _LEAST_WORD_LENGTH}
    by_folded = {one.casefold(): one for one in known}
    holding = [one for one in by_folded if len(folded) >= _LEAST_WORD_LENGTH and folded in one]
    sharing = {one: len(words.intersection(_BETWEEN_WORDS.split(one))) for one in by_folded}
    sharing_most = sorted((one for one in by_folded if sharing[one]), key=lambda one: -sharing[one])
    alike = difflib.get_close_matches(folded, by_folded, n=_MOST_NAMED)
    found = dict.fromkeys([*holding, *sharing_most, *alike] if holding or not alike else [*alike, *sharing_most])
    return [by_folded[one] for one in list(found)[:_MOST_NAMED]]


def names_hint(name: str, known: Sequence[str]) -> str:
    """Return the way out if a name is none of the known ones: all of these, before them those that may be meant."""
    nearest = nearest_names(name, known)
    suggestion = f"did you mean {' or '.join(nearest)}? " if nearest else ""
    return f"{suggestion}use one of {', '.join(known)}"
