"""Answers that several routes give alike."""

from fastapi import Response

from api.schemas.base import Document


def not_stored(document: Document, status: int = 200) -> Response:
    """Answer with a document that no cache may keep."""
    headers = {"Cache-Control": "no-store"}
    return Response(document.model_dump_json(), status_code=status, media_type="application/json", headers=headers)
