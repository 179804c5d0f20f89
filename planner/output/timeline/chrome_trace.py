"""A timeline in the JSON form of Chrome's trace events, which Perfetto and chrome://tracing open.

A rank is a process, a track a thread; bars are complete events (``"ph": "X"``) with microseconds. Viewers hold whole
nanoseconds, so that both ends of a bar are rounded to these: parts then lie inside their phase as they do in the plan.

References
----------
"Trace Event Format", Google, 2016: complete and metadata events, ``cname``.
"""

from collections.abc import Mapping, Sequence

from planner.output.timeline.bars import Bar, BarKind, Timeline, Track

#: Reserved colour names of the format, the nearest to the palette's; Perfetto has colours of its own.
COLOUR_NAMES = {
    "input_comm": "thread_state_iowait",
    "prefetch": "rail_response",
    "forward_compute": "thread_state_running",
    "forward_comm": "thread_state_runnable",
    "backward_comm": "rail_animation",
    "backward_compute": "terrible",
    "replica_sync": "rail_load",
    "checkpoint": "olive",
    "kv_recompute": "vsync_highlight_color",
    "dense_forward": "generic_work",
    "dense_backward": "black",
    "all_reduce": "heap_dump_stack_frame",
    "stash": "yellow",
    "restore": "yellow",
    "checkpoint_upload": "olive",
    "overhead": "grey",
}
_WAITS = "grey"
_TRACKS = tuple(Track)
_FIRST_PROCESS = 1  # 0 is the idle process of a machine
_NANOSECONDS = 1e9


def chrome_trace(timeline: Timeline, *, names: Sequence[str], facts: Mapping[str, object]) -> dict[str, object]:
    """Return the trace of a timeline.

    Parameters
    ----------
    timeline
        Of the plan.
    names
        What to call every rank, (num_ranks,).
    facts
        What the trace is of, as ``otherData``.
    """
    events: list[dict[str, object]] = []
    for rank, name in enumerate(names):
        process = _FIRST_PROCESS + rank
        events += [
            _metadata("process_name", process, name=name),
            _metadata("process_sort_index", process, sort_index=rank),
        ]
        for track in sorted({bar.track for bar in timeline.bars if bar.duration_seconds[rank] > 0}, key=_TRACKS.index):
            thread = _thread(process, track)
            events += [
                _metadata("thread_name", process, thread, name=track.value.replace("_", " ")),
                _metadata("thread_sort_index", process, thread, sort_index=_TRACKS.index(track)),
            ]
    for event in timeline.events():
        start = round(event.start_seconds * _NANOSECONDS)
        end = round((event.start_seconds + event.duration_seconds) * _NANOSECONDS)
        if end > start:
            process = _FIRST_PROCESS + event.rank
            events.append(
                {
                    "ph": "X",
                    "pid": process,
                    "tid": _thread(process, event.bar.track),
                    "name": event.bar.name,
                    "cat": event.bar.kind.value,
                    "ts": start / 1000,
                    "dur": (end - start) / 1000,
                    "cname": _colour(event.bar),
                    "args": _arguments(event.bar),
                }
            )
    return {"displayTimeUnit": "ns", "otherData": dict(facts), "traceEvents": events}


def _thread(process: int, track: Track) -> int:
    """Return a number that no other track of any rank has."""
    return process * len(_TRACKS) + _TRACKS.index(track)


def _metadata(kind: str, process: int, thread: int | None = None, **arguments: object) -> dict[str, object]:
    found: dict[str, object] = {"ph": "M", "name": kind, "pid": process, "args": arguments}
    return found if thread is None else {**found, "tid": thread}


def _colour(bar: Bar) -> str:
    if bar.kind is BarKind.WAIT:
        return _WAITS
    return COLOUR_NAMES[bar.phase if bar.phase is not None else bar.name]


def _arguments(bar: Bar) -> dict[str, object]:
    """Return what the format's events have beyond times; nothing that is not known."""
    known = {"phase": bar.phase, "module": bar.module, "whole_seconds": bar.whole_seconds}
    return {name: value for name, value in known.items() if value is not None and value != ""}
