"""The page of the benchmarks names what is there, and the figures that it is about."""

from pathlib import Path

from benchmarks.peers import TORCHREC_RESULTS
from benchmarks.suites import SUITES


def test_every_file_command_suite_and_instance_is_described(root: Path) -> None:
    text = (root / "benchmarks" / "README.md").read_text()
    scripts = sorted((root / "benchmarks").glob("*.py"))
    assert scripts
    for script in scripts:
        assert f"`{script.name}`" in text, script
        if "__main__" in script.read_text():
            assert f"python benchmarks/{script.name} " in text, script
    for name in (*TORCHREC_RESULTS, *SUITES):
        assert f"`{name}`" in text, name
