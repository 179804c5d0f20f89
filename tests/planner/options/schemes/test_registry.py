"""The registry knows every scheme, and every scheme keeps the contract."""

from pathlib import Path

from cost_models.vocabulary import Scheme
from planner.options.schemes.registry import SCHEMES


def test_every_scheme_once() -> None:
    assert sorted(maker.scheme for maker in SCHEMES) == sorted(Scheme)


def test_every_scheme_is_held_to_the_contract() -> None:
    """A file per scheme, whose class inherits the contract."""
    for maker in SCHEMES:
        source = (Path(__file__).parent / f"test_{maker.scheme.label}.py").read_text()
        assert f"class Test{type(maker).__name__}(SchemeContract):" in source
