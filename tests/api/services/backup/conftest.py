"""Commands, as the tests of the command line run them."""

from tests.api.cli.conftest import run

__all__ = ["run"]
