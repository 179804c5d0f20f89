"""One service for all tests of a module that leave it as they find it."""

from collections.abc import Iterator

import pytest

from tests.support.service.live import Live


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service with the real planner."""
    with Live.of(tmp_path_factory.mktemp("data")) as service:
        yield service
