"""Request headers that decide about encodings, conditions and waiting, and those of a page of a list."""

import re

from api.services.plans.cache import ENCODINGS
from cost_models.text.read_number import finite_number

_WAIT = re.compile(r'(?:^|[,;\s])wait\s*=\s*"?([0-9]{1,6})"?\s*(?:$|[,;])', re.IGNORECASE)


def choose_encoding(accept_encoding: str) -> str:
    """Return the best encoding that the caller takes: zstd, gzip or identity."""
    quality: dict[str, float] = {}
    for item in accept_encoding.lower().split(","):
        name, _, parameters = item.strip().partition(";")
        quality[name.strip()] = _quality(parameters)
    for encoding in ENCODINGS[:-1]:
        if quality.get(encoding, quality.get("*", 0.0)) > 0:
            return encoding
    return "identity"


def _quality(parameters: str) -> float:
    text = parameters.strip()
    if not text.startswith("q="):
        return 1.0
    return finite_number(text[2:]) or 0.0


def preferred_wait(prefer: str, max_seconds: float) -> float | None:
    """Return N of ``Prefer: wait=N``, seconds, but no more than a request may wait."""
    found = _WAIT.search(prefer)
    return min(float(found.group(1)), max_seconds) if found else None


def page_headers(address: str, page_size: int, page_token: str | None, chosen: str = "") -> dict[str, str]:
    """Return the headers of a page of a list, with a link to the next one where there is one."""
    headers = {"Cache-Control": "no-store"}
    if page_token is not None:
        headers["Link"] = f'<{address}?page_size={page_size}&page_token={page_token}{chosen}>; rel="next"'
    return headers
