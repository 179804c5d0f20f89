r"""Restarts after failures against a spare host: arithmetic of numbers that the user gave.

A failure of one of ``n`` hosts costs a restart of

.. math:: t = t_{startup} + t_{repeated} + t_{moved} + t_{read}

with the move of the bytes that other ranks have, and the reading of the others by the host that reads most. Without a
spare the job goes on with ``n - 1`` hosts, at their rate, until the host is repaired; then it restarts with ``n`` hosts
from where it is. With a spare it restarts with ``n`` hosts under the same plan, and the spare reads what was lost.
"""

from collections.abc import Mapping
from typing import Any

from api.schemas.studies.portfolio import PortfolioSpec
from api.services.studies.kinds.portfolio.moves import Move

_SECONDS_PER_HOUR, _HOURS_PER_DAY = 3600.0, 24.0


def restart_costs(
    request: PortfolioSpec,
    members: tuple[Mapping[str, Any], Mapping[str, Any]],
    down: Move,
    up: Move,
    replaced: Move,
) -> dict[str, Any]:
    """Return what failures cost per day without a spare and with one.

    ``members`` are the main plan's and that with a host fewer; ``down`` and ``up`` what moves from one to the other and
    back, and ``replaced`` what a spare reads. Prices are ``None`` if the request has none.
    """
    restart = request.restart
    assert restart is not None
    main, fewer = members
    after_failure = restart.startup_seconds + restart.repeated_seconds
    restarting = after_failure + _seconds(down, restart.checkpoint_bytes_per_second)
    returning = restart.startup_seconds + _seconds(up, restart.checkpoint_bytes_per_second)
    replacing = after_failure + _seconds(replaced, restart.checkpoint_bytes_per_second)
    rate, lower_rate = main["samples_per_second"], fewer["samples_per_second"]
    has_rates = rate is not None and lower_rate is not None
    slower = restart.repair_hours * _SECONDS_PER_HOUR * (1 - lower_rate / rate) if has_rates else 0.0
    failures = restart.host_failures_per_day * main["num_hosts"]
    lost, lost_with_spare = failures * (restarting + returning + slower), failures * replacing
    per_hour = main["price_per_hour"]
    spare = restart.spare_price_per_hour
    if spare is None and per_hour is not None:
        spare = per_hour / main["num_hosts"]
    return {
        "failures_per_day": failures,
        "restart_seconds": restarting,
        "return_seconds": returning,
        "slower_seconds": slower,
        "spare_restart_seconds": replacing,
        "lost_seconds_per_day": lost,
        "spare_lost_seconds_per_day": lost_with_spare,
        "price_per_day": None if per_hour is None else lost * per_hour / _SECONDS_PER_HOUR,
        "spare_price_per_day": _with_spare(per_hour, spare, lost_with_spare),
    }


def _with_spare(per_hour: float | None, spare: float | None, lost_seconds: float) -> float | None:
    """Return what a spare costs per day, and the seconds that are lost all the same."""
    if per_hour is None or spare is None:
        return None
    return spare * _HOURS_PER_DAY + lost_seconds * per_hour / _SECONDS_PER_HOUR


def _seconds(move: Move, bytes_per_second: float) -> float:
    return (move.seconds or 0.0) + move.most_read_bytes / bytes_per_second
