"""Where the repository is, and the public data next to it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Public workloads, measurements and the figures of other planners; tests that need them skip where they are absent.
SHARED = ROOT.parent / "shared"
