"""What devices are called in measurements: rows of one name are learned from together, from all who wrote them."""

import platform
import re
from importlib.metadata import packages_distributions, version
from pathlib import Path


def cpu_name() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else platform.processor() or platform.machine()


def device_text(name: str) -> str:
    """Return a name as measurements take it: printable, short, and no formula of a spreadsheet."""
    cleaned = re.sub(r"[^ -~]+|\((?:R|TM)\)", "", name).strip()
    return re.sub(r"^[^A-Za-z0-9_]+", "", re.sub(r" +", " ", cleaned))[:80].strip() or "unknown device"


def fbgemm_library() -> str | None:
    """Return the name and version of FBGEMM, which runs the lookups; ``None`` where it is not installed."""
    found = packages_distributions().get("fbgemm_gpu")
    if not found:
        return None
    return f"{found[0].replace('-', '_').removesuffix('_cpu')} {version(found[0])}"
