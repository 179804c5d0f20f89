"""The page of the benchmarks names what is there, and the figures that it is about."""

from pathlib import Path

from benchmarks.golden_vs_torchrec import TORCHREC_RESULTS


def test_every_script_and_instance_is_described(root: Path) -> None:
    text = (root / "benchmarks" / "README.md").read_text()
    scripts = sorted(path.name for path in (root / "benchmarks").glob("*.py"))
    assert scripts
    for script in scripts:
        assert f"| `{script}` | " in text, script
        assert f"python benchmarks/{script} " in text, script
    for instance in TORCHREC_RESULTS:
        assert f"`{instance}`" in text, instance
