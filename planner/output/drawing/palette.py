"""The colours of phases and of memory, in light and dark, wherever they are drawn: pages, pictures, traces.

Every colour has a contrast of 3:1 to the card behind it (WCAG 2.2, 1.4.11). Any two phases that a step of embeddings
has stay apart for readers without red, green or blue cones. Memory has muted colours, which no phase has. A search
found them for these distances (in OKLab, with the simulations of Machado et al. 2009), and a test holds them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour on a light card, and on a dark one, as ``#rrggbb``."""

    light: str
    dark: str


#: What is behind charts.
CARD = Colour("#ffffff", "#171c22")
INK = Colour("#1c2127", "#e4e8ec")
FAINT = Colour("#59636e", "#a0abb6")
RULE = Colour("#8b949e", "#76828e")
#: Waits and the overhead of a step: time in which nothing is done for the plan, and space that is free.
WAIT, WAIT_WORDS = "wait", "waits and overhead"
FREE = Colour("#e6e8eb", "#2a313a")

#: Phases of the embeddings, in the order of a step, and what else a step consists of.
STEP_COLOURS = {
    "input_comm": Colour("#69237b", "#a34ba6"),
    "prefetch": Colour("#00825d", "#ccea73"),
    "forward_compute": Colour("#3d3cbd", "#696ff6"),
    "forward_comm": Colour("#2e99e3", "#64c9fc"),
    "backward_comm": Colour("#bb891e", "#ea9f1f"),
    "backward_compute": Colour("#8f040a", "#c83006"),
    "replica_sync": Colour("#0e6a75", "#54a085"),
    "checkpoint": Colour("#666e00", "#a88741"),
    "kv_recompute": Colour("#825fd9", "#9b95f8"),
    "dense_forward": Colour("#9a9199", "#c4c9c6"),
    "dense_backward": Colour("#424a4a", "#656e63"),
    "all_reduce": Colour("#b83a97", "#fe67a9"),
}
#: Bars of a step that have the colour of something else.
_LIKE = {
    "stash": "stashed_weights",
    "restore": "stashed_weights",
    "checkpoint_upload": "checkpoint",
    "overhead": WAIT,
}

#: What memory holds, from what stays to what comes and goes.
MEMORY_COLOURS = {
    "tables": Colour("#536d93", "#638688"),
    "optimizer_state": Colour("#8292bf", "#b7b5d9"),
    "stashed_weights": Colour("#ac8e6f", "#d0b393"),
    "caches": Colour("#7f4e5b", "#86764d"),
    "dense_parameters": Colour("#583f64", "#406d86"),
    "ids": Colour("#8a7d88", "#7da1af"),
    "rows": Colour("#916746", "#a5eae5"),
    "gradients": Colour("#6c3930", "#eedcab"),
    "activations": Colour("#5a5f2c", "#9ea26c"),
}
#: The group of every line of a ledger, and of the memory over a step.
MEMORY_LINES = {
    "weights": "tables",
    "tables": "tables",
    "slots": "tables",
    "row_keys": "tables",
    "slot_history": "tables",
    "remap": "tables",
    "growth": "tables",
    "hot_rows": "caches",
    "optimizer_state": "optimizer_state",
    "row_optimizer_state": "optimizer_state",
    "dense_parameters": "dense_parameters",
    "collective_buffers": "dense_parameters",
    "cache": "caches",
    "cache_index": "caches",
    "eviction_buffers": "caches",
    "write_buffers": "caches",
    "input_batches": "ids",
    "input_buffers": "ids",
    "distinct_rows": "ids",
    "index_dedup": "ids",
    "stashed_weights": "stashed_weights",
    "output_buffers": "rows",
    "lookup_outputs": "rows",
    "sent_rows": "rows",
    "received_rows": "rows",
    "pooled_rows": "rows",
    "gradients": "gradients",
    "gradients_of_pooled_rows": "gradients",
    "gradient_copies": "gradients",
    "sent_gradients": "gradients",
    "received_gradients": "gradients",
    "gradients_of_outputs": "gradients",
    "activations": "activations",
}


def colour_of(name: str) -> str:
    """Return the name of the colour of a bar of a step."""
    return _LIKE.get(name, name)


def memory_groups(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the groups of lines, in the order of :data:`MEMORY_COLOURS`."""
    found = {MEMORY_LINES[line] for line in lines}
    return tuple(group for group in MEMORY_COLOURS if group in found)


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2, relative luminance)."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def text_on(colour: str) -> str:
    """Return black or white, whichever is read better on a colour."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, colour))


def style_sheet() -> str:
    """Return the styles of a picture, which follow the reader's light or dark."""
    return f"{_rules('light')}@media (prefers-color-scheme:dark){{{_rules('dark')}}}"


def _rules(mode: Literal["light", "dark"]) -> str:
    def of(colour: Colour) -> str:
        return colour.light if mode == "light" else colour.dark

    fills = {WAIT: FREE, **STEP_COLOURS, **MEMORY_COLOURS}
    found = [
        f"text{{fill:{of(INK)}}}.faint{{fill:{of(FAINT)}}}.card{{fill:{of(CARD)}}}",
        f".rule{{stroke:{of(RULE)}}}.limit{{stroke:{of(RULE)};stroke-dasharray:5 4}}",
        f"rect.part{{fill:{of(CARD)};fill-opacity:.35;stroke:{of(CARD)};stroke-width:.7}}",
    ]
    for name, colour in fills.items():
        found.append(f".{name}{{fill:{of(colour)}}}.on-{name}{{fill:{text_on(of(colour))}}}")
    return "".join(found)
