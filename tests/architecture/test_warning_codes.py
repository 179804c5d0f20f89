"""Every warning that the service gives is documented."""

import re

from tests.support.paths import ROOT


def test_codes_of_warnings_are_documented() -> None:
    documented = (ROOT / "docs" / "http-api.md").read_text() + (ROOT / "docs" / "concepts.md").read_text()
    sources = [path.read_text() for folder in ("api", "planner") for path in (ROOT / folder).rglob("*.py")]
    blocks = [block for text in sources for block in re.findall(r"Issue\((.*?severity=\"warning\")", text, re.DOTALL)]
    codes = {re.findall(r"code=\"([a-z-]+)\"", block)[-1] for block in blocks}
    assert len(codes) >= 8
    missing = [code for code in sorted(codes) if f"`{code}`" not in documented]
    assert missing == []
