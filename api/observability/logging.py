"""The log on stderr: of this package, of uvicorn and of DBOS, all in one format; JSON lines if stderr is no terminal.

A line has a time, a level, who says it and what; what it is about (a solve, a fit, an executor) are fields of their
own. Lines say nothing of what specs contain: statements of the database are logged without their parameters,
tracebacks without their variables, and of what others attach to a record only the known fields are written.
"""

import logging
import re

import structlog
from opentelemetry.trace import get_current_span
from structlog.typing import EventDict, Processor, WrappedLogger

from api.settings import Settings

#: What a line may be about.
FIELDS = ("request_id", "solve_id", "fit_id", "executor_id", "host", "state", "reason", "seconds")
#: Who speaks at the level of the setting; everybody else from warnings on.
_SPEAKERS = ("api", "planner", "cost_models", "uvicorn", "dbos")
#: What DBOS says of every start, and of each of some sixty steps of the first one; what can go wrong there is an error.
_START_MESSAGES = re.compile("Applying DBOS .* migration|SQLite system database is for development")


def is_json(settings: Settings, *, is_terminal: bool) -> bool:
    return settings.log_format == "json" or (settings.log_format == "auto" and not is_terminal)


def set_up(settings: Settings, handler: logging.Handler, *, is_terminal: bool) -> None:
    """Log to a handler, as the settings say; for a process that is a server or worker, before anything else logs."""
    handler.setFormatter(_formatter(as_json=is_json(settings, is_terminal=is_terminal), colors=is_terminal))
    level = settings.log_level.upper()
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in _SPEAKERS:
        logger = logging.getLogger(name)
        logger.setLevel(level)
        # DBOS would add a handler of its own to a logger that has none.
        logger.handlers[:] = [handler]
        logger.propagate = False
    logging.getLogger("dbos").addFilter(_is_no_start)


def _is_no_start(record: logging.LogRecord) -> bool:
    return _START_MESSAGES.search(record.getMessage()) is None


def _add_trace_id(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Say in which trace a line was written, where there is one."""
    context = get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = f"{context.trace_id:032x}"
    return event


def _formatter(*, as_json: bool, colors: bool) -> logging.Formatter:
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=FIELDS),
        _add_trace_id,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Not the default formatter of exceptions, which shows the values of variables.
    console = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)
    as_document: list[Processor] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    last = as_document if as_json else [console]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
    )
