"""Colours of charts can be seen, told from each other without some cones, and are those of one thing each."""

import itertools

import numpy as np
import pytest

from cost_models.vocabulary import STEP_PHASES, Phase
from planner.output.drawing.palette import (
    CARD,
    MEMORY_COLOURS,
    MEMORY_LINES,
    STEP_COLOURS,
    Colour,
    contrast,
    text_on,
)
from planner.pricing.memory.ledger import LINES

#: Linear RGB as a reader sees it; Machado, Oliveira and Fernandes (2009), severity 1.
VISION = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
#: OKLab, https://bottosson.github.io/posts/oklab/
CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
LAB = np.array(
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
)


def seen(colour: str, vision: str) -> np.ndarray:
    """The place of a colour in OKLab."""
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return np.asarray(LAB @ np.cbrt(CONES @ np.clip(np.array(VISION[vision]) @ linear, 0, 1)))


def distance(first: str, second: str, vision: str) -> float:
    return float(np.linalg.norm(seen(first, vision) - seen(second, vision)))


def of(colour: Colour, mode: str) -> str:
    return str(getattr(colour, mode))


every_mode = pytest.mark.parametrize("mode", ["light", "dark"])


@every_mode
def test_every_colour_stands_out_from_the_card(mode: str) -> None:
    for name, colour in {**STEP_COLOURS, **MEMORY_COLOURS}.items():
        assert contrast(of(colour, mode), of(CARD, mode)) >= 3.0, name
        assert contrast(text_on(of(colour, mode)), of(colour, mode)) >= 4.5, name


@every_mode
@pytest.mark.parametrize("vision", VISION)
def test_phases_of_a_step_differ_for_every_eye(mode: str, vision: str) -> None:
    for a, b in itertools.combinations([phase.label for phase in STEP_PHASES], 2):
        assert distance(of(STEP_COLOURS[a], mode), of(STEP_COLOURS[b], mode), vision) >= 0.1, (a, b)
    for a, b in itertools.combinations(STEP_COLOURS, 2):
        assert distance(of(STEP_COLOURS[a], mode), of(STEP_COLOURS[b], mode), vision) >= 0.055, (a, b)
    for a, b in itertools.combinations(MEMORY_COLOURS, 2):
        assert distance(of(MEMORY_COLOURS[a], mode), of(MEMORY_COLOURS[b], mode), vision) >= 0.055, (a, b)


@every_mode
def test_memory_has_colours_of_its_own(mode: str) -> None:
    for a, b in itertools.product(STEP_COLOURS, MEMORY_COLOURS):
        assert distance(of(STEP_COLOURS[a], mode), of(MEMORY_COLOURS[b], mode), "all cones") >= 0.055, (a, b)


def test_every_phase_and_every_line_has_a_colour() -> None:
    assert {phase.label for phase in Phase} <= set(STEP_COLOURS)
    assert set(LINES) <= set(MEMORY_LINES)
    assert set(MEMORY_LINES.values()) == set(MEMORY_COLOURS)
