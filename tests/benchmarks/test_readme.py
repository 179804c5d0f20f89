"""The page of the benchmarks names what is there, and the figures that it is about."""

import sys
from pathlib import Path

from benchmarks.peers.peers import TORCHREC_RESULTS
from benchmarks.solver.suites import SUITES


def test_every_file_command_suite_and_instance_is_described(root: Path) -> None:
    text = (root / "benchmarks" / "README.md").read_text()
    scripts = sorted((root / "benchmarks").rglob("*.py"))
    assert scripts
    for script in scripts:
        assert f"`{script.relative_to(root / 'benchmarks')}`" in text, script
        if "__main__" in script.read_text():
            assert f"python {script.relative_to(root)} " in text, script
    for name in (*TORCHREC_RESULTS, *SUITES):
        assert f"`{name}`" in text, name


def test_no_script_hides_a_module_of_the_standard_library(root: Path) -> None:
    """A script's own folder comes first on the path of whatever it imports."""
    scripts = {script.stem for script in (root / "benchmarks").rglob("*.py")}
    assert not scripts & sys.stdlib_module_names
