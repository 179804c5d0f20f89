"""Values that a shell completes: names that the package knows, and names of channels that a service has.

A shell waits for the answer at every press of the key, so a service has a second, and what goes wrong is no value.
"""

import os
from collections.abc import Callable, Iterable
from typing import get_args

import typer

_SERVICE_SECONDS = 1.0


def _completes(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what a shell asks for the names that begin with what was typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _profiles() -> Iterable[str]:
    from cost_models.hardware.profiles_loader import profile_ids

    return profile_ids()


def _partitioners() -> Iterable[str]:
    from planner.solver.partitioners.registry import partitioner_names

    return partitioner_names()


def _cost_models() -> Iterable[str]:
    from cost_models.registry import cost_model_names

    return cost_model_names()


def _objectives() -> Iterable[str]:
    from api.schemas.spec import SpecDocument

    return get_args(SpecDocument.model_fields["objective"].annotation)


def _optimizers() -> Iterable[str]:
    from api.schemas.table import OptimizerName

    return get_args(OptimizerName)


def _formats() -> Iterable[str]:
    from planner.output.exporters.registry import FORMATS

    return FORMATS


complete_profile = _completes(_profiles)
complete_partitioner = _completes(_partitioners)
complete_cost_model = _completes(_cost_models)
complete_objective = _completes(_objectives)
complete_optimizer = _completes(_optimizers)
complete_format = _completes(_formats)


def complete_channel(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the channels of the service that the command line names; none if it does not answer at once."""
    from api.cli.remote.connection import DEFAULT_SERVER, SERVER_VARIABLE, connected

    server = ctx.params.get("server") or os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER
    try:
        with connected(server, ctx.params.get("token_file"), once_within_seconds=_SERVICE_SECONDS) as client:
            names = [str(channel["name"]) for channel in client.channels.list_all()]
    except Exception:  # a shell shows whatever is written as a value
        return []
    return [name for name in names if name.startswith(incomplete)]
