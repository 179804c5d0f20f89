"""Where the machine code of the searches is kept, and whether it is there; to ask does not load the compiler."""

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

#: What is compiled; next to it count all files of the kernels, whose constants compiled code has.
_COMPILED = re.compile(rb"^@compiled$", re.MULTILINE)
_KERNELS = Path(__file__).parent
_PARTITIONERS = Path(__file__).parents[1]
#: Longest wait for another process that compiles and may hang; then a process compiles, too. Longer than a compile
#: takes, shorter than a solve waits for its process.
_MOST_WAIT_SECONDS = 100.0
_LOOK_SECONDS = 0.1


def cache_folder() -> Path:
    """Return the folder of this version's machine code: under NUMBA_CACHE_DIR, else the user's cache."""
    digest = hashlib.sha256()
    for source in _sources():
        digest.update(source.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(home, "shardplan", "compiled")
    return Path(base) / digest.hexdigest()[:16]


def is_warm() -> bool:
    """Whether the searches of this checkout have been compiled on this machine."""
    return warm_mark().exists()


@contextlib.contextmanager
def compiling_alone() -> Iterator[None]:
    """Let one process at a time compile, so that one compile serves all that begin together.

    Those that come meanwhile wait, and then find the machine code. The system ends the lock of a process that dies
    (flock(2)). There is no lock if all is compiled already, or in a folder that cannot be written or locked.
    """
    with contextlib.ExitStack() as stack:
        if not is_warm():
            with contextlib.suppress(OSError):
                cache_folder().mkdir(parents=True, exist_ok=True)
                _lock(stack.enter_context((cache_folder() / "compiling").open("ab")).fileno())
        yield


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + _MOST_WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOOK_SECONDS)
        else:
            return


def warm_mark() -> Path:
    """Return the file that says that these very files were compiled.

    numba finds machine code by the path of its source, so that a copy has none.
    """
    paths = [str(source.resolve()) for source in _sources()]
    mark = hashlib.sha256("\n".join(paths).encode()).hexdigest()[:16]
    return cache_folder() / f"warm-{mark}"


def _sources() -> list[Path]:
    """Return the files that compiled code is made of, in a fixed order."""
    sources = sorted(_PARTITIONERS.rglob("*.py"))
    return [source for source in sources if source.is_relative_to(_KERNELS) or _COMPILED.search(source.read_bytes())]
