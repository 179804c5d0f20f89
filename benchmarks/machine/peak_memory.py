"""The most memory that this process held, since it was last asked to forget."""

import contextlib
import resource
import sys
from pathlib import Path

_KIBIBYTE = 1024
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"  # proc(5): reset the peak resident set size to the current one


def forget_peak() -> None:
    """Let the next peak count from here; elsewhere than on Linux the peak stays that of the process."""
    with contextlib.suppress(OSError):
        _CLEAR.write_text(_FORGET_PEAK)


def peak_bytes() -> int:
    """Return the peak resident set size: interpreter, libraries and all."""
    with contextlib.suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIBIBYTE
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * _KIBIBYTE
