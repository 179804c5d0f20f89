"""What can still be read of a spec whose form is broken, so that all that is wrong with it is reported at once.

Wrong values are taken out, and their defaults stand in their place; unknown fields are taken out, too. A table or a
group that lacks something without a default is left out as a whole. Values that are not known are marked as broken (see
``IssueCollector``), so that rules which read them are not reported.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from api.schemas.base import StrictModel
from api.schemas.spec import SpecDocument
from api.specs.input.json import form_errors, form_issue, likely_field, models_in, pointer
from api.specs.issues import IssueCollector
from api.specs.state import Originals, SpecState
from planner.domain.problem.table_names import unique_names

Path = tuple[int | str, ...]

#: How often errors are taken out. Taking a field out can break the object that it was in, and lists that end at their
#: first wrong item can have a second one; what is broken then is taken out with what is around it.
_MAX_ROUNDS = 3
_TABLES, _SAME_RANK, _APART = ("model", "tables"), ("constraints", "same_rank"), ("constraints", "apart")
_OBJECTIVES = ("objectives",)
#: Lists of which single items are left out.
_LISTS: tuple[Path, ...] = (_TABLES, _SAME_RANK, _APART, _OBJECTIVES)
#: What stands for required fields that are not known; the stages that need them are skipped.
_STAND_INS: dict[Path, Any] = {
    ("model",): {"tables": []},
    _TABLES: [],
    ("hardware",): {"profile": "unknown"},
    ("hardware", "profile"): "unknown",
}
#: A document without any table is not valid.
_ANY_TABLE = {"name": "any", "num_embeddings": 1, "embedding_dim": 4, "pooling_factor": 1}


def recover(content: Any, details: list[ErrorDetails], model: type[StrictModel], issues: IssueCollector) -> SpecState:
    """Report the errors of a spec, and return what is left without the values that have them.

    ``model`` is the document of which ``details`` are the errors: the spec itself, or a request with a spec at the base
    of ``issues``. Raises ``RejectedDocument`` if nothing is left.
    """
    if not isinstance(content, dict):
        for detail in details:
            issues.add_beyond(form_issue(detail, model))
        issues.raise_if_any()
    rest = _Rest(content, model, issues)
    rest.take_out([_at(detail, detail["loc"][len(rest.base) :]) for detail in details])
    for _ in range(_MAX_ROUNDS):
        try:
            return rest.state()
        except ValidationError as error:
            rest.take_out(form_errors(error, rest.content), with_surroundings=True)
    issues.raise_if_any()
    raise AssertionError("a document without issues could not be read")


class _Rest:
    """What is left of a spec, and the number that each item of its lists had in the document as it was sent."""

    def __init__(self, content: dict[str, Any], model: type[StrictModel], issues: IssueCollector) -> None:
        self.content, self._model, self._issues = content, model, issues
        self.base: Path = tuple(issues.base.split("/")[1:])
        self._numbers = {path: list(range(len(_list_at(content, path)))) for path in _LISTS}
        self._names = _names_of(_list_at(content, _TABLES)) or [None]
        self._shortened: set[Path] = set()  # lists that lack items

    def state(self) -> SpecState:
        """Return what is left as a document; raises ``ValidationError``."""
        return SpecState(
            spec=self._validated(),
            originals=Originals(
                tables=self._numbers[_TABLES],
                groups={"same_rank": self._numbers[_SAME_RANK], "apart": self._numbers[_APART]},
                objectives=self._numbers[_OBJECTIVES],
                table_names=self._names,
                has_all_groups=self._issues.is_sound("/constraints/same_rank", "/constraints/apart"),
                has_all_objectives=_OBJECTIVES not in self._shortened,
            ),
        )

    def _validated(self) -> SpecDocument:
        if _list_at(self.content, _TABLES):
            return SpecDocument.model_validate_json(json.dumps(self.content), strict=True)
        with_table = {**self.content, "model": {**self.content["model"], "tables": [_ANY_TABLE]}}
        spec = SpecDocument.model_validate_json(json.dumps(with_table), strict=True)
        return spec.model_copy(update={"model": spec.model.model_copy(update={"tables": []})})

    def take_out(self, details: list[ErrorDetails], *, with_surroundings: bool = False) -> None:
        """Report errors, and take out the values that have them, or the largest part around each that can be spared."""
        broken: list[str] = []
        cuts: set[Path] = set()
        for detail in details:
            cut = _cut(self._standing(detail["loc"]), with_surroundings=with_surroundings)
            broken += self._report(detail, cut)
            cuts.add(cut)
        for where in broken:  # once all of the errors are reported, none of which follows from another one
            self._issues.mark_broken(where)
        for cut in sorted(cuts, reverse=True):  # items of a list from the last one on, parts before the whole
            self._remove(cut)

    def _report(self, detail: ErrorDetails, cut: Path) -> Iterator[str]:
        """Report one error, unless it follows from what was taken out before; yield what is not known from now on."""
        if detail["type"] == "too_short" and detail["loc"] in self._shortened:
            return
        sent = self._as_sent(detail["loc"])
        detail_as_sent = _at(detail, (*self.base, *sent))
        issue = form_issue(detail_as_sent, self._model)
        issue = replace(issue, pointer=issue.pointer.removeprefix(self._issues.base))
        if detail["type"] == "extra_forbidden":
            self._issues.add_unknown_field(issue)
            likely = likely_field(detail_as_sent, self._model)
            if likely is not None and likely not in self._at(detail["loc"][:-1]):
                yield pointer((*sent[:-1], likely))
            return
        fields = detail.get("ctx", {}).get("fields", ())
        self._issues.add(issue, reads=tuple(pointer((*sent, field)) for field in fields))
        if isinstance(cut[-1], str):
            yield pointer(self._as_sent(cut))
        if sent[:2] == _TABLES and sent[3:] == ("name",) and isinstance(sent[2], int):
            self._names[sent[2]] = None

    def _remove(self, path: Path) -> None:
        *parents, last = path
        place = self._at(tuple(parents))
        if path in _STAND_INS:
            place[last] = copy.deepcopy(_STAND_INS[path])
        else:
            del place[last]
        if isinstance(last, int):
            del self._numbers[path[:-1]][last]
            self._shortened.add(path[:-1])
        for of_list, numbers in self._numbers.items():
            if of_list[: len(path)] == path:  # the list went as a whole
                numbers.clear()

    def _at(self, path: Path) -> Any:
        place: Any = self.content
        for part in path:
            place = place[part]
        return place

    def _standing(self, location: Path) -> Path:
        """Return a location without what follows a value that has no parts: ends may name a form of a value."""
        place: Any = self.content
        for depth, part in enumerate(location):
            if isinstance(place, dict):
                if part not in place:  # a field that is missing is named by where it belongs
                    return location
            elif not isinstance(place, list) or not isinstance(part, int):
                return location[:depth]
            place = place[part]
        return location

    def _as_sent(self, path: Path) -> Path:
        """Return where a value stood in the document as it was sent."""
        for of_list, numbers in self._numbers.items():
            length = len(of_list)
            if path[:length] == of_list and len(path) > length:
                return (*of_list, numbers[int(path[length])], *path[length + 1 :])
        return path


def _cut(location: Path, *, with_surroundings: bool) -> Path:
    """Return what is taken out for an error: the smallest part around it that a spec can do without, or the largest."""
    models: list[type[BaseModel]] = [SpecDocument]
    candidates: list[Path] = []
    for depth, part in enumerate(location):
        if isinstance(part, int):
            if location[:depth] in _LISTS:
                candidates.append(location[: depth + 1])
            continue
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        if not any(field.is_required() for field in fields):
            candidates.append(location[: depth + 1])
        if not fields:  # no field of ours, or one of a plan that is read elsewhere
            break
        models = [inner for field in fields for inner in models_in(field.annotation)]
    if candidates:
        return candidates[0 if with_surroundings else -1]
    return next(location[:length] for length in range(len(location), 0, -1) if location[:length] in _STAND_INS)


def _list_at(content: Any, path: Path) -> list[Any]:
    """Return a list of a document; an empty one if there is none."""
    for part in path:
        content = content.get(part) if isinstance(content, dict) else None
    return content if isinstance(content, list) else []


def _names_of(tables: list[Any]) -> list[str | None]:
    """Return the names of tables, each with its module's path if several modules have it."""
    found: list[str | None] = [None] * len(tables)
    named = {number: table for number, table in enumerate(tables) if _is_named(table)}
    names = unique_names([(table.get("module_path", ""), table["name"]) for table in named.values()])
    for number, name in zip(named, names, strict=True):
        found[number] = name
    return found


def _is_named(table: Any) -> bool:
    return (
        isinstance(table, dict) and isinstance(table.get("name"), str) and isinstance(table.get("module_path", ""), str)
    )


def _at(detail: ErrorDetails, location: Path) -> ErrorDetails:
    moved = detail.copy()
    moved["loc"] = location
    return moved
