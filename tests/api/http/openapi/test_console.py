"""The console at /docs needs no network and may not use one."""

import re

from api.http.openapi.console import content_security_policy
from tests.support.service.live import Live


def test_everything_that_the_page_loads_is_served_here(live: Live) -> None:
    page = live.get("/docs")
    assert page.status_code == 200
    addresses = re.findall(r"(?:src|href)=[\"']([^\"']+)", page.text)
    assert len(addresses) >= 3
    for address in addresses:
        assert address.startswith("/docs/assets/"), address
        assert live.get(address).status_code == 200
    assert "/openapi.json" in page.text
    assert live.get("/openapi.json").json()["info"]["title"] == "shardplan"


def test_the_policy_allows_nothing_foreign(live: Live) -> None:
    policy = live.get("/docs").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert "*" not in policy
    assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]


def test_inline_scripts_are_allowed_by_hash_alone() -> None:
    # sha256 of "1" in base64
    policy = content_security_policy("<script>1</script>")
    assert "'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='" in policy
