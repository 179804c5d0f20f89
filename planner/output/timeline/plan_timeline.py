r"""The timeline of a step, or of a request, as a plan's own seconds say it runs.

A step of a plan takes :math:`S + F + B + \max(0, A - h) + O + W` seconds (:mod:`planner.pricing.step.whole_step`). The
timeline lays these terms out one after the other. All ranks begin a phase of the embeddings together, for the objective
adds up slowest ranks; a rank that is done early waits. What dense compute hides is on a track of its own:

===================  ==================================================================================================
``next_batch``       from the beginning of the dense part: ids of the next batch, and rows that its caches fetch. What
                     does not fit there opens the step
``all_reduce``       ends, as far as it is hidden, with the dense backward pass; the rest follows
``stash``            copies to the host from the beginning of the dense part; copies back end with it
``checkpoint``       an upload goes on under several steps; the bar ends with this one
===================  ==================================================================================================

Of a request, cards do not wait for each other: phases of a card follow one another, and the request ends with the
slowest card. Without times of the dense part the step is that of the embeddings alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cost_models.arrays import Floats
from cost_models.vocabulary import Phase
from planner.domain.formats.compact_form import rows_of
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.shard_groups import rank_loads
from planner.output.timeline.bars import Bar, BarKind, Timeline, Track
from planner.output.timeline.parts import PhaseParts, seconds_of_phase

_BEFORE_DENSE = (Phase.INPUT_COMM, Phase.PREFETCH, Phase.FORWARD_COMPUTE, Phase.FORWARD_COMM)
_AFTER_DENSE = (Phase.BACKWARD_COMM, Phase.BACKWARD_COMPUTE, Phase.REPLICA_SYNC, Phase.CHECKPOINT)
_STASHED = "stashed_weights"
#: Of a phase: a difference of ranks that is less comes from the order in which seconds were added up.
_NO_WAIT = 1e-9


def plan_timeline(plan: CompactPlanDocument, parts: Sequence[PhaseParts] = ()) -> Timeline:
    """Return the timeline of a plan; without ``parts`` its phases show starts of sharding types alone."""
    loads = rank_loads(plan)
    hosts = tuple(int(load["host"]) for load in loads)
    layout = _Layout(plan, loads, parts)
    if plan.get("serving") is not None:
        return Timeline(unit="request", seconds=plan["objective"]["seconds"], hosts=hosts, bars=layout.request())
    bars = layout.step()
    whole = plan.get("whole_step")
    seconds = whole["seconds"] if whole is not None else plan["objective"]["step_time_seconds"]
    return Timeline(unit="step", seconds=float(seconds or 0.0), hosts=hosts, bars=bars)


class _Layout:
    """Places bars; ``_now`` is the end of what the step has so far."""

    def __init__(self, plan: CompactPlanDocument, loads: Sequence[Mapping[str, Any]], parts: Sequence[PhaseParts]):
        self._plan, self._parts = plan, parts
        self._loads, self._num_ranks = loads, len(loads)
        self._counted = {phase["name"]: phase for phase in plan["phases"] if phase.get("counted", True)}
        self._now = 0.0
        self._bars: list[Bar] = []

    def step(self) -> tuple[Bar, ...]:
        whole = self._plan.get("whole_step")
        for phase in _BEFORE_DENSE:
            self._phase(phase.label)
        if whole is not None:
            self._dense(whole)
        for phase in _AFTER_DENSE:
            if phase is not Phase.CHECKPOINT or whole is None:  # which no whole step contains
                self._phase(phase.label)
        if whole is not None:
            self._together("overhead", BarKind.OVERHEAD, whole["overhead_seconds"])
        self._upload()
        return tuple(self._bars)

    def request(self) -> tuple[Bar, ...]:
        ends = np.zeros(self._num_ranks)
        for name in self._counted:
            seconds = self._seconds(name)
            self._bars.append(self._bar(name, BarKind.PHASE, ends, seconds, phase=name))
            self._nested(name, [(0.0, np.inf, ends, Track.STEP)])
            ends = ends + seconds
        self._bars.append(self._bar("wait", BarKind.WAIT, ends, ends.max(initial=0.0) - ends))
        return tuple(bar for bar in self._bars if bar.duration_seconds.any())

    def _bar(self, name: str, kind: BarKind, start: Floats, seconds: Floats, **more: Any) -> Bar:
        return Bar(name=name, kind=kind, start_seconds=start, duration_seconds=seconds, **{"track": Track.STEP, **more})

    def _everywhere(self, seconds: float) -> Floats:
        return np.full(self._num_ranks, float(seconds))

    def _together(self, name: str, kind: BarKind, seconds: float, **more: Any) -> None:
        """Add what takes all ranks equally long."""
        if seconds > 0:
            self._bars.append(self._bar(name, kind, self._everywhere(self._now), self._everywhere(seconds), **more))
            self._now += seconds

    def _seconds(self, name: str) -> Floats:
        return np.array([load["seconds"].get(name, 0.0) for load in self._loads], dtype=np.float64)

    def _phase(self, name: str) -> None:
        """Add a phase of the embeddings, as far as dense compute does not hide it, with what waits for its end."""
        if name not in self._counted:
            return
        hidden = self._counted[name]["hidden_seconds"]
        own = np.maximum(self._seconds(name) - hidden, 0.0)
        slowest = float(own.max(initial=0.0))
        if slowest <= 0:
            return
        start = self._everywhere(self._now)
        self._bars.append(self._bar(name, BarKind.PHASE, start, own, phase=name))
        self._nested(name, [(hidden, np.inf, start, Track.STEP)])
        waited = np.where(slowest - own > _NO_WAIT * slowest, slowest - own, 0.0)
        if waited.any():
            self._bars.append(self._bar("wait", BarKind.WAIT, start + own, waited, phase=name))
        self._now += slowest

    def _hidden(self, name: str) -> None:
        """Add what dense compute hides of a phase, which is work for the next step."""
        hidden = self._counted[name]["hidden_seconds"] if name in self._counted else 0.0
        if hidden <= 0:
            return
        start, own = self._everywhere(self._now), np.minimum(self._seconds(name), hidden)
        self._bars.append(self._bar(name, BarKind.PHASE, start, own, track=Track.NEXT_BATCH, phase=name))
        self._nested(name, [(0.0, hidden, start, Track.NEXT_BATCH)])

    def _nested(self, name: str, spans: Sequence[tuple[float, float, Floats, Track]]) -> None:
        """Add the parts of a phase, one after the other; of each span what lies between two of its seconds."""
        for first, last, start, track in spans:
            begun = np.zeros(self._num_ranks)
            for label, module, kind, seconds in self._parts_of(name):
                low, high = np.clip(begun, first, last), np.clip(begun + seconds, first, last)
                begun = begun + seconds
                if (high > low).any():
                    self._bars.append(
                        self._bar(label, kind, start + low - first, high - low, track=track, phase=name, module=module)
                    )

    def _parts_of(self, name: str) -> Iterator[tuple[str, str, BarKind, Floats]]:
        for part in self._parts:
            yield part.sharding_type, part.module, BarKind.SHARDING_TYPE, seconds_of_phase(part, name)
        if not self._parts:
            for start in self._plan.get("starts") or []:
                seconds = self._everywhere(start["phase_seconds"].get(name, 0.0))
                yield start["sharding_type"], start["module"], BarKind.STARTS, seconds

    def _dense(self, whole: Mapping[str, Any]) -> None:
        """Add the dense part with all that runs at the same time."""
        self._hidden(Phase.INPUT_COMM.label)
        self._hidden(Phase.PREFETCH.label)
        began = self._now
        self._forward(whole["dense_forward_seconds"])
        self._together("dense_backward", BarKind.DENSE, whole["dense_backward_seconds"])
        stash = self._plan.get("stash")
        if stash is not None:
            self._together("wait_for_restore", BarKind.WAIT, stash["backward_wait_seconds"])
            self._copies(stash, began, self._now)
        reduced, hidden = whole["dense_all_reduce_seconds"], whole["hidden_all_reduce_seconds"]
        if reduced > 0:
            start = self._everywhere(self._now - hidden)
            bar = self._bar("all_reduce", BarKind.ALL_REDUCE, start, self._everywhere(hidden), track=Track.ALL_REDUCE)
            self._bars += [bar] if hidden > 0 else []
            self._together("all_reduce", BarKind.ALL_REDUCE, reduced - hidden)

    def _forward(self, seconds: float) -> None:
        """Add dense forward compute; activations that find no room wait until the copies to the host have ended."""
        stash = self._plan.get("stash")
        waited = 0.0 if stash is None else stash["forward_wait_seconds"]
        if stash is None or waited <= 0:
            self._together("dense_forward", BarKind.DENSE, seconds)
            return
        before = min(max(stash["to_host_seconds"] - waited, 0.0), seconds)
        self._together("dense_forward", BarKind.DENSE, before)
        self._together("wait_for_stash", BarKind.WAIT, waited)
        self._together("dense_forward", BarKind.DENSE, seconds - before)

    def _copies(self, stash: Mapping[str, Any], began: float, ended: float) -> None:
        """Add the copies of every rank's stashed weights, at the rates of the rank that stashes most."""
        if stash["stashed_bytes"] <= 0:
            return
        share = np.array([_stashed(load) for load in self._loads]) / stash["stashed_bytes"]
        to_host, to_device = share * stash["to_host_seconds"], share * stash["to_device_seconds"]
        start = self._everywhere(began)
        self._bars.append(self._bar("stash", BarKind.COPY, start, to_host, track=Track.STASH))
        self._bars.append(self._bar("restore", BarKind.COPY, ended - to_device, to_device, track=Track.STASH))

    def _upload(self) -> None:
        """Add the upload of a full checkpoint on the ranks of each host, as far as this step reaches."""
        checkpoint = self._plan.get("checkpoint")
        if checkpoint is None or checkpoint["full"]["upload_seconds"] <= 0:
            return
        by_host: list[Any] = rows_of(checkpoint["by_host"])
        slowest = checkpoint["full"]["upload_seconds"]
        rate = max(entry["full_bytes"] for entry in by_host) / slowest
        own = np.array([by_host[load["host"]]["full_bytes"] / rate for load in self._loads])
        self._bars.append(
            self._bar(
                "checkpoint_upload",
                BarKind.UPLOAD,
                self._everywhere(0.0),
                np.minimum(own, self._now),
                track=Track.CHECKPOINT,
                whole_seconds=slowest,
            )
        )


def _stashed(load: Mapping[str, Any]) -> float:
    """Return the stashed weights of a rank: what its memory holds of them while the copies to the host end."""
    memory = load.get("step_memory") or {"buffer_bytes": {}}
    return float(max((lines.get(_STASHED, 0) for lines in memory["buffer_bytes"].values()), default=0))
