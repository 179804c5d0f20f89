"""The pages as files: what is served how, and what they may do."""

import gzip
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import zstandard

from api.http.pages.files import page_files
from api.http.pages.site import ADDRESSES
from planner.options.schemes.geometry import PREFERRED_ORDER
from planner.output.explain.reasons import cut_in_words
from tests.support.service.live import Live

#: Of echarts 6.1.0 on npm: dist/echarts.esm.min.mjs.
ECHARTS_SHA256 = "28515f26aa57f87eb1e4ed4eb446927eaf329b5f5e02b4bfd4b0264fea40d1da"
OWN = {path: file for path, file in page_files().by_path.items() if not path.startswith("vendor/")}


def text(path: str) -> str:
    return page_files().by_path[path].by_encoding["identity"].body.decode()


def example(address: str) -> str:
    """An address of a pattern."""
    return re.sub(r"{[^}]*}", "x", address)


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_has_the_shell_and_a_page(live: Live, address: str) -> None:
    answer = live.get(example(address))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    patterns = [re.compile(pattern.replace(r"\/", "/")) for pattern in re.findall(r"\[/(\^.*?\$)/,", text("main.js"))]
    assert len(patterns) == len(ADDRESSES)
    assert any(pattern.search(example(address)) for pattern in patterns)


@pytest.mark.parametrize("address", ["/ui", "/ui/", "/ui/nothing", "/ui/solves/a/b", "/ui/plans/a/diff"])
def test_an_address_without_a_page_is_a_404_that_people_can_read(live: Live, address: str) -> None:
    answer = live.get(address, follow_redirects=True)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_the_policy_allows_files_of_this_server_alone(live: Live) -> None:
    policy = live.get("/").headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == "'self'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert rules["frame-ancestors"] == "'none'"
    for loose in ("unsafe", "http", "*", "data:", "blob:"):
        assert loose not in policy


def test_the_shell_has_nothing_inline_and_loads_what_is_served(live: Live) -> None:
    shell = live.get("/").text
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)", shell)
    addresses = re.findall(r'(?:src|href)="(/ui/assets/[^"]+)"', shell)
    assert len(addresses) >= 4
    for address in addresses:
        assert live.get(address).status_code == 200, address


def test_files_never_change_under_their_address(live: Live) -> None:
    for path, file in page_files().by_path.items():
        answer = live.get(f"{page_files().address}/{path}", headers={"Accept-Encoding": "identity"})
        assert answer.status_code == 200
        assert answer.content == file.by_encoding["identity"].body
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert live.get(f"/ui/assets/{'0' * 16}/main.js").status_code == 404
    assert live.get(f"{page_files().address}/nothing.js").status_code == 404
    assert live.get("/").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("main.js", "text/javascript; charset=utf-8"),
        ("vendor/echarts.esm.min.mjs", "text/javascript; charset=utf-8"),
        ("base.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("vendor/LICENSE-echarts", "text/plain; charset=utf-8"),
    ],
)
def test_files_have_their_type(live: Live, path: str, media_type: str) -> None:
    assert live.get(f"{page_files().address}/{path}").headers["content-type"] == media_type


def test_encodings_are_the_same_bytes_with_etags_of_their_own(live: Live) -> None:
    address = f"{page_files().address}/vendor/echarts.esm.min.mjs"
    by_encoding = page_files().by_path["vendor/echarts.esm.min.mjs"].by_encoding
    file = {encoding: chosen.body for encoding, chosen in by_encoding.items()}
    assert gzip.decompress(file["gzip"]) == zstandard.decompress(file["zstd"]) == file["identity"]
    assert len(file["zstd"]) < len(file["identity"]) / 3
    etags = set()
    for encoding in ("zstd", "gzip", "identity"):
        answer = live.get(address, headers={"Accept-Encoding": encoding})
        assert answer.headers.get("content-encoding", "identity") == encoding
        assert answer.headers["content-length"] == str(len(file[encoding]))
        assert answer.headers["vary"] == "Accept-Encoding"
        etags.add(answer.headers["etag"])
        again = live.get(address, headers={"Accept-Encoding": encoding, "If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
        assert again.content == b""
    assert len(etags) == 3


def test_head_has_the_headers_and_no_body(live: Live) -> None:
    for address in ("/", f"{page_files().address}/main.js"):
        answer = live.request("HEAD", address)
        assert answer.status_code == 200
        assert answer.content == b""
        assert int(answer.headers["content-length"]) > 100
    refused = live.post("/", {})
    assert refused.status_code == 405
    assert refused.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", sorted(OWN))
def test_no_file_makes_markup_or_code_of_text_or_names_another_host(path: str) -> None:
    source = text(path).replace("http://www.w3.org/2000/svg", "")
    for dangerous in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "://"):
        assert dangerous not in source, dangerous
    assert 'setAttribute("style"' not in source
    assert len(source.splitlines()) <= 300


def test_every_module_that_is_imported_is_there() -> None:
    for path in OWN:
        if not path.endswith(".js"):
            continue
        for target in re.findall(r'(?:from |import\()"([^"]+)"', text(path)):
            folder = Path(path).parent
            resolved = (Path("/") / folder / target).resolve().relative_to("/")
            assert str(resolved) in page_files().by_path, f"{path}: {target}"


def test_schemes_have_the_words_of_explanations() -> None:
    """One table of words: the page leaves the widths of pieces out."""
    shown = json.loads(text("schemes.js").partition("Object.entries(")[2].removesuffix("));\n"))
    assert list(shown) == [scheme.label for scheme in PREFERRED_ORDER]
    for scheme in PREFERRED_ORDER:
        assert shown[scheme.label] == cut_in_words(scheme, (), "{group}").replace(" ()", "")


def test_the_chart_library_is_the_published_one_with_its_licences() -> None:
    body = page_files().by_path["vendor/echarts.esm.min.mjs"].by_encoding["identity"].body
    assert hashlib.sha256(body).hexdigest() == ECHARTS_SHA256
    assert "Apache License" in text("vendor/LICENSE-echarts")
    assert "Apache ECharts" in text("vendor/NOTICE-echarts")
    assert "Mike Bostock" in text("vendor/LICENSE-d3")
    assert "BSD 3-Clause" in text("vendor/LICENSE-zrender")


def test_a_built_wheel_has_the_files(root: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=root,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    generated = {"schemes.js"}  # by the server, from the planner's own words
    for path in ({*page_files().by_path} - generated) | {"index.html"}:
        assert f"api/http/pages/assets/{path}" in names
