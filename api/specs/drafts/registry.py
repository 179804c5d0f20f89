"""The forms of files that have tables; what is in a file shows its form, and not its name."""

from api.specs.drafts.configs import draft_of_configs, is_configs
from api.specs.drafts.draft import Draft
from api.specs.drafts.plans import draft_of_print_out, draft_of_torchrec
from api.specs.drafts.table_sheet import COLUMNS, draft_of_table_sheet, is_table_sheet
from api.specs.input.json import RejectedDocument, is_plan, read_json
from api.specs.plans.registry import foreign_text
from api.specs.plans.torchrec import is_torchrec
from planner.errors import Issue

FORMS = (
    "a CSV of tables, a JSON list of EmbeddingBagConfigs or of tables, a plan of TorchRec, or a log with what"
    " TorchRec's planner printed"
)


def read_draft(raw: bytes) -> Draft:
    """Return the tables that a file has, whatever its form.

    Raises
    ------
    RejectedDocument
        The file has no known form, or its form is broken; every problem is listed.
    """
    if (printed := foreign_text(raw)) is not None:
        return draft_of_print_out(printed)
    content = read_json(raw)
    if is_torchrec(content):
        return draft_of_torchrec(raw)
    if is_configs(content):
        return draft_of_configs(raw)
    text = raw.decode("utf-8", errors="replace")
    if content is None and is_table_sheet(text):
        return draft_of_table_sheet(text)
    if is_plan(content):
        message, hint = (
            "this is a plan of shardplan, which has no ids per sample",
            "give the spec that it was made from",
        )
    else:
        message = "no tables were found"
        hint = f"give {FORMS}; the first line of a CSV names its columns, among {', '.join(COLUMNS)}"
    raise RejectedDocument([Issue(code="unknown-form", pointer="", message=message, hint=hint)])
