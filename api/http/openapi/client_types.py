"""The types of the launcher's client, as Python: what determines training in a plan document, and the verdict."""

import inspect
import re
import textwrap
from collections.abc import Container
from typing import get_args

from api.schemas.described import fields_of
from planner.domain.formats import compact_form, reshard_bands
from planner.domain.formats.canonical_json import DERIVED_SHARD_KEYS, DIGEST_KEYS, OPTIONAL_DIGEST_KEYS
from planner.output.documents.plan import PlanDocument, ShardDocument, TableDocument
from planner.output.documents.replica_groups import ReplicaGroupsDocument
from planner.output.documents.verdict import LongestPhaseDocument, PlanVerdictDocument, PriceErrorsDocument

WIDTH = 120
#: Where definitions stand, which is in front of their names.
_MODULES = re.compile(r"planner\.output\.documents\.\w+\.")
#: The client works with httpx alone, so it cannot import the definition.
HEADER = '''"""What a launcher reads of a plan. Generated from planner/output/documents: edit a module there, then run

``make generated``.
"""

from typing import Literal, NotRequired, TypedDict

#: Version of the plan document.
SCHEMA_VERSION = {version}
#: Keys of a plan that determine training: the digest covers these, so timing never changes it.
DIGEST_KEYS = {digest_keys}
#: Keys that it covers, too, in plans that have them.
OPTIONAL_DIGEST_KEYS = {optional_digest_keys}
#: Keys of a shard that follow from the others and are outside the digest.
DERIVED_SHARD_KEYS = {derived_shard_keys}
'''

BANDS_HEADER = "# A copy of planner/domain/formats/reshard_bands.py: edit that file, then run make generated.\n"
COPY_HEADER = "# A copy of planner/domain/formats/compact_form.py: edit that file, then run make generated.\n"


def client_types_text() -> str:
    """Return the source of ``api/client/plan_types.py``."""
    (version,) = (get_args(field.type)[0] for field in fields_of(PlanDocument) if field.name == "schema_version")
    header = HEADER.format(
        version=version,
        digest_keys=_source(DIGEST_KEYS),
        optional_digest_keys=_source(OPTIONAL_DIGEST_KEYS),
        derived_shard_keys=_source(DERIVED_SHARD_KEYS),
    )
    plan = _class_source(PlanDocument, only={"plan_digest", "verdict", *DIGEST_KEYS, *OPTIONAL_DIGEST_KEYS})
    of_verdict = (LongestPhaseDocument, PriceErrorsDocument, PlanVerdictDocument)
    parts = (ShardDocument, TableDocument, ReplicaGroupsDocument, *of_verdict)
    return "\n\n".join((header, *map(_class_source, parts), plan))


def compact_form_text() -> str:
    """Return the source of ``api/client/compact_form.py``: the planner's module, which imports nothing of ours."""
    return COPY_HEADER + inspect.getsource(compact_form)


def reshard_bands_text() -> str:
    """Return the source of ``api/client/reshard_bands.py``: the planner's module, next to the client's compact form."""
    source = inspect.getsource(reshard_bands)
    return BANDS_HEADER + source.replace(f"from {compact_form.__name__} import", "from .compact_form import")


def _source(value: object) -> str:
    return repr(value).replace("'", '"')


def _class_source(definition: type, *, only: Container[str] | None = None) -> str:
    """Return a definition as a class with all fields or some of them; those that a reader may miss are optional."""
    lines = [f"class {definition.__name__}(TypedDict):", f'    """{definition.__doc__}"""', ""]
    for field in fields_of(definition):
        if only is not None and field.name not in only:
            continue
        lines += textwrap.wrap(field.description or "", WIDTH, initial_indent="    #: ", subsequent_indent="    #: ")
        annotation = _MODULES.sub("", inspect.formatannotation(field.type))
        is_optional = not field.is_required or field.is_nullable or field.name in DERIVED_SHARD_KEYS
        lines.append(f"    {field.name}: {f'NotRequired[{annotation}]' if is_optional else annotation}")
    return "\n".join(lines) + "\n"
