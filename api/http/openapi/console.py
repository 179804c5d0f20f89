"""The OpenAPI console at ``/docs``: all of it comes from this server, and nothing may leave it."""

import base64
import hashlib
import re
from importlib.resources import files

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

ASSETS = "/docs/assets"
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def add_console(app: FastAPI) -> None:
    """Serve the console with assets of the package ``fastapi_offline``."""
    page = get_swagger_ui_html(
        openapi_url=str(app.openapi_url),
        title=f"{app.title}: console",
        swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{ASSETS}/favicon.png",
        swagger_ui_parameters={"defaultModelsExpandDepth": 0, "displayRequestDuration": True, "tryItOutEnabled": True},
    )
    content = bytes(page.body)
    headers = {"Content-Security-Policy": content_security_policy(content.decode()), "X-Frame-Options": "DENY"}

    async def docs() -> Response:
        return HTMLResponse(content, headers=headers)

    app.add_api_route("/docs", docs, methods=["GET"], include_in_schema=False)
    assets = files("fastapi_offline") / "static"
    app.mount(ASSETS, StaticFiles(directory=str(assets)), name="docs-assets")


def content_security_policy(page: str) -> str:
    """Allow this server and the page's own inline scripts, by hash, and nothing else."""
    scripts = (hashlib.sha256(script.encode()).digest() for script in _INLINE_SCRIPT.findall(page))
    hashes = " ".join(f"'sha256-{base64.b64encode(value).decode()}'" for value in scripts)
    return (
        "default-src 'none'; connect-src 'self'; img-src 'self' data:; font-src 'self' data:; "
        f"script-src 'self' {hashes}; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    )
