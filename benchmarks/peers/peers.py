"""What other planners reach on an instance: stored figures, re-made searches, and TorchRec itself."""

import functools
import importlib.util
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.peers import neuroshard, torchrec_live
from benchmarks.peers.peer_prices import piece_costs, torchrec_options
from planner.orchestration.baselines.torchrec_search import search

_ROUNDED = 1e-4  # stored figures have four decimals
_EXACT = 1e-9  # float sums in another order
MILLISECONDS_PER_SECOND = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerFigure:
    """What a peer reached."""

    who: str
    evidence: str
    objective_seconds: float  # inf without a plan
    seconds: float  # wall clock
    timed_out: bool = False
    seconds_are_its_own: bool = True  # False where its search is re-made, which may be faster or slower
    tolerance: float = _EXACT  # relative; what counts as equal


Peer = Callable[[Mapping[str, Any]], PeerFigure]

#: Slowest rank, ms on TorchRec's estimator, and seconds that TorchRec 1.8.0's planner took.
TORCHREC_RESULTS = {
    "dlrm_dcnv2_8": (4.1733, 2.4),
    "dlrm_dcnv2_16": (8.1164, 3.5),
    "synth_50_8": (9.8219, 3.7),
    "synth_50_16": (16.9402, 13.1),
    "synth_200_16": (51.7490, 81.0),
}


def torchrec_stored(name: str) -> Peer:
    """Return TorchRec's own result on a golden instance, taken once on a loaded machine of two cores."""
    milliseconds, seconds = TORCHREC_RESULTS[name]
    figure = PeerFigure(
        who="TorchRec 1.8.0",
        evidence="its planner, default settings, run once; seconds of a loaded machine",
        objective_seconds=milliseconds / MILLISECONDS_PER_SECOND,
        seconds=seconds,
        tolerance=_ROUNDED,
    )
    return lambda _: figure


def torchrec_remade(time_limit_seconds: float) -> Peer:
    """Return TorchRec's default proposers and packing, re-made, at our prices of its options."""
    return functools.partial(_torchrec_remade, time_limit_seconds=time_limit_seconds)


def _torchrec_remade(spec: Mapping[str, Any], *, time_limit_seconds: float) -> PeerFigure:
    found = search(*torchrec_options(spec), time_limit_seconds=time_limit_seconds)
    return PeerFigure(
        who="TorchRec 1.8.0, re-made",
        evidence=f"equal prices; {found.num_packed} of {found.num_proposals} proposals packed",
        objective_seconds=found.max_rank_seconds,
        seconds=found.wall_seconds,
        timed_out=found.is_cut,
        seconds_are_its_own=False,
    )


def has_torchrec() -> bool:
    """Whether TorchRec can be run here."""
    return importlib.util.find_spec("torchrec") is not None


def torchrec_itself(time_limit_seconds: float) -> Peer:
    """Return TorchRec's own planner with its kernels in device memory; needs TorchRec."""
    return functools.partial(_torchrec_itself, time_limit_seconds=time_limit_seconds)


def _torchrec_itself(spec: Mapping[str, Any], *, time_limit_seconds: float) -> PeerFigure:
    found = torchrec_live.plan(
        spec, kernels=("fused", "dense"), time_limit_seconds=max(1, math.ceil(time_limit_seconds))
    )
    return PeerFigure(
        who="TorchRec, installed",
        evidence=f"its planner, run now; {found.num_packed} of {found.num_proposals} proposals packed",
        objective_seconds=found.max_rank_seconds,
        seconds=found.wall_seconds,
        timed_out=found.wall_seconds >= time_limit_seconds,
        tolerance=_ROUNDED,
    )


def neuroshard_remade(spec: Mapping[str, Any]) -> PeerFigure:
    """Return NeuroShard's search, re-made, at our prices; the spec must be restricted to columns."""
    costs = piece_costs(spec)
    began = time.monotonic()
    found = neuroshard.search(costs, objective=spec["objective"])
    return PeerFigure(
        who="NeuroShard 06aaa2b, re-made",
        evidence=f"equal prices; {found.num_states} states placed, {found.num_halvings} halvings",
        objective_seconds=found.cost_seconds,
        seconds=time.monotonic() - began,
        seconds_are_its_own=False,
    )
