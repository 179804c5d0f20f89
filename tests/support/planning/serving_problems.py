"""Hosts that serve, with round numbers, for tests."""

from dataclasses import replace

from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.hardware.profile_fields import FIELDS
from cost_models.registry import make_cost_model
from cost_models.vocabulary import Evidence
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import REQUEST_LATENCY, Problem, Reservation
from planner.domain.problem.serving import Serving
from planner.domain.problem.table import Table

SERVING = make_cost_model("serving")

#: 100 GB/s of gathers, 2 GB/s to a card and 1 GB/s back, 10 us for a message.
_NUMBERS = {
    "hbm_bytes": 16e9,
    "hbm_bytes_per_second": 1e11,
    "host_link_bytes_per_second": 2e9,
    "host_link_return_bytes_per_second": 1e9,
    "host_link_message_seconds": 1e-5,
}


def cards(count: int = 6, **changes: float) -> Cluster:
    """One host of some cards."""
    numbers = {
        name: Quantity(value=value, unit=FIELDS[name].unit, evidence=Evidence.ESTIMATED, source="a test")
        for name, value in (_NUMBERS | changes).items()
    }
    hardware = Hardware(profile="test", family="inference", ranks_per_host=8, numbers=numbers)
    return Cluster(hardware=hardware, num_hosts=1, ranks_per_host=count)


def serving_problem(*tables: Table, cluster: Cluster | None = None, samples: int = 60, **asked: float) -> Problem:
    """Requests of some samples, no table trained, nothing reserved."""
    return Problem(
        tables=tuple(replace(table, optimizer=OPTIMIZERS["none"]) for table in tables),
        cluster=cluster or cards(),
        serving=Serving(samples_per_request=samples, **asked),
        objective=REQUEST_LATENCY,
        pipeline="none",
        reservation=Reservation(hbm_fraction=0.0, dense_multiplier=0.0, input_copies=0),
    )
