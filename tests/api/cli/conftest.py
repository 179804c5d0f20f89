"""Commands, run in the process of the tests."""

from pathlib import Path

import pytest

from api.cli import main
from tests.support.cli.run import Answer, Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command in this process."""

    def answer(*arguments: str | Path) -> Answer:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Answer(int(stop.value.code or 0), captured.out, captured.err)

    return answer
