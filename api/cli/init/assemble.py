"""A spec out of options, a source and answers."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, get_args

from api.cli.errors import BadInput, echo, print_issues
from api.cli.files import parse_assignment, with_changes
from api.cli.init.answers import Answers, pooling_factors_of, table_of
from api.cli.init.questions import ask, ids, one_of, whole
from api.cli.init.sources import Source, is_python, source_of_file, source_of_tables
from api.schemas.base import MAX_NAME_LENGTH, TITLE_PATTERN
from api.schemas.table import OptimizerName
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profiles_loader import CUSTOM, load_profile, profile_ids
from cost_models.text.number_text import counted
from planner.errors import InvalidProblem

Value = TypeVar("Value")

DEFAULT_PROFILE = "dgx-h100-80g"
DEFAULT_BATCH_SIZE_PER_RANK = 4096  # samples
DEFAULT_POOLING_FACTOR = "1"  # ids per sample, as TorchRec counts
DEFAULT_OPTIMIZER = "rowwise_adagrad"
_PROFILES = tuple(name for name in profile_ids() if name != CUSTOM)


def assembled(answers: Answers, *, is_asked: bool) -> bytes:
    """Return the spec as JSON; what is answered goes into ``answers`` at once.

    Raises
    ------
    BadInput
        There are no tables, or an option is wrong.
    KeyboardInterrupt
        The person ended the questions.
    """
    model = _source(answers, is_asked=is_asked)
    facts = model.facts
    if facts is not None:
        print_issues(facts.warnings)
    if is_asked:
        echo(f"{counted(model.num_tables, 'table')} from {model.form}. An empty answer takes what is in brackets.")
    default_name = "my-model" if answers.source in (None, "-") else _stem(answers.source or "")
    answers.name = answers.name or _asked("Name of the model", _title, default_name, is_asked)
    if answers.batch_size_per_rank is None:
        known = None if facts is None else facts.batch_size_per_rank
        default = str(known or DEFAULT_BATCH_SIZE_PER_RANK)
        answers.batch_size_per_rank = _asked("Samples of one rank in one step", whole, default, is_asked)
    hardware = _hardware(answers, model, is_asked=is_asked)
    by_name, default_ids = pooling_factors_of(answers.pooling_factors)
    missing = [feature for feature in model.features_without_ids if feature not in by_name]
    if missing and default_ids is None:
        shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        question = f"Mean ids of one sample in each of {counted(len(missing), 'feature')} ({shown})"
        answers.pooling_factors.append(_asked(question, ids, DEFAULT_POOLING_FACTOR, is_asked))
        by_name, default_ids = pooling_factors_of(answers.pooling_factors)
        if not is_asked:
            echo(
                f"warning: {counted(len(missing), 'feature')} counted with {DEFAULT_POOLING_FACTOR} id per sample"
                f" ({shown}): no other number decides as much; state it with --pooling-factor"
            )
    if not model.has_all_optimizers and answers.optimizer is None:
        choices = one_of(get_args(OptimizerName))
        answers.optimizer = _asked("Optimizer of the tables", choices, DEFAULT_OPTIMIZER, is_asked)
    optimizer = None if model.has_all_optimizers else answers.optimizer
    document = {
        "schema_version": 1,
        "name": answers.name,
        "model": {
            "batch_size_per_rank": answers.batch_size_per_rank,
            **model.model(by_name, default_ids, optimizer),
        },
        "hardware": hardware,
    }
    changed = with_changes(json.dumps(document).encode(), dict(map(parse_assignment, answers.changes)))
    return json.dumps(json.loads(changed), indent=2).encode() + b"\n"


def _source(answers: Answers, *, is_asked: bool) -> Source:
    if answers.source is not None:
        return source_of_file(answers.source)
    if not answers.tables and is_asked:
        source = _asked("File with the tables, or nothing to type them", _readable, "", is_asked)
        if source is not None:
            answers.source, model = source
            return model
        echo("Each table as NAME ROWSxCOLUMNS IDS, such as: user 10Mx64 1.0   (IDS: mean ids of one sample)")
        while typed := _asked(f"Table {len(answers.tables) + 1}, or nothing to end", _table, "", is_asked):
            answers.tables.append(typed)
    if not answers.tables:
        raise BadInput(
            "there are no tables: name a file that has them (a CSV, JSON of EmbeddingBagConfigs, a plan, a log,"
            " FILE.py), or state them with --table NAME=ROWSxCOLUMNS@IDS"
        )
    return source_of_tables(answers.tables)


def _hardware(answers: Answers, model: Source, *, is_asked: bool) -> dict[str, object]:
    facts = model.facts
    world_size = None if facts is None else facts.world_size
    if answers.profile is None:
        if is_asked:
            echo("Hardware profiles: " + ", ".join(_PROFILES))
        answers.profile = _asked("Hardware profile", one_of(_PROFILES), DEFAULT_PROFILE, is_asked)
    per_host = _ranks_per_host(answers, model, _profile(answers.profile))
    if answers.num_hosts is None:
        hosts = 1 if world_size is None else max(world_size // per_host, 1)
        answers.num_hosts = _asked("Hosts", whole, str(hosts), is_asked)
    if answers.ranks_per_host is None:
        answers.ranks_per_host = _asked("Ranks of each host", whole, str(per_host), is_asked)
    return {
        "profile": answers.profile,
        "num_hosts": answers.num_hosts,
        "ranks_per_host": answers.ranks_per_host,
    }


def _profile(name: str) -> Hardware | None:
    """Return a profile; ``None`` for one that the check of the spec will refuse, with the names that there are."""
    return load_profile(name) if name in _PROFILES else None


def _ranks_per_host(answers: Answers, model: Source, profile: Hardware | None) -> int:
    """Return the ranks of each host that the options, the source or the profile state."""
    facts = model.facts
    if answers.ranks_per_host is not None:
        return answers.ranks_per_host
    if facts is not None and facts.ranks_per_host is not None:
        return facts.ranks_per_host
    most = 8 if profile is None else profile.ranks_per_host
    world_size = None if facts is None else facts.world_size
    return most if world_size is None or world_size % most == 0 else min(world_size, most)


def _asked(question: str, read: Callable[[str], Value], default: str, is_asked: bool) -> Value:
    return ask(question, read, default) if is_asked else read(default)


def _title(text: str) -> str:
    if not re.fullmatch(TITLE_PATTERN, text) or len(text) > MAX_NAME_LENGTH:
        raise BadInput("expected a name of ASCII characters that begins with a letter or a digit")
    return text


def _stem(source: str) -> str:
    """Return the name of a model by its file, as a spec takes it."""
    place = source.partition(":")[0] if is_python(source) else source
    stem = Path(place.removesuffix(".py")).name if place.endswith(".py") else Path(place).stem
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).lstrip(".-")[:MAX_NAME_LENGTH] or "my-model"


def _table(text: str) -> str:
    """Return a table as the option has it; nothing for nothing."""
    if text:
        table_of(text)
    return text


def _readable(path: str) -> tuple[str, Source] | None:
    """Return the source of a file that has tables; nothing for nothing."""
    if not path:
        return None
    try:
        return path, source_of_file(path)
    except InvalidProblem as error:
        print_issues(error.issues)
        raise BadInput(f"{path} was not read") from None
