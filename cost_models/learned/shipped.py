"""Learned models that come with the package: which there are, and which one ``learned`` means if none is chosen.

``models/<name>.json`` are documents of models, as a fit writes them; ``models/profiles.json`` names, for hardware
profiles whose machine one of them was measured on, its file.
"""

import functools
import json
from collections.abc import Mapping
from importlib.resources import files

_PROFILES = "profiles"


@functools.cache
def shipped_models() -> Mapping[str, bytes]:
    """Return the documents of all models by name."""
    entries = sorted((files("cost_models") / "learned" / "models").iterdir(), key=lambda entry: entry.name)
    names = [entry.name.removesuffix(".json") for entry in entries if entry.name.endswith(".json")]
    return {name: _content(name) for name in names if name != _PROFILES}


@functools.cache
def shipped_for(profile: str) -> str | None:
    """Return the name of the model that was measured on machines of a hardware profile."""
    chosen: dict[str, str] = json.loads(_content(_PROFILES))
    return chosen.get(profile)


def _content(name: str) -> bytes:
    return (files("cost_models") / "learned" / "models" / f"{name}.json").read_bytes()
