"""Where stand-ins that run in solver processes leave what they tell a test.

Those processes are forked from one that began before the test had a folder: they know a link, which follows the test.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

#: The variable that names the folder, to stand-ins in processes of any kind.
VARIABLE = "STAND_IN_FOLDER"
_LINK = Path(tempfile.mkdtemp(prefix="shardplan-tests-")) / "folder"
atexit.register(shutil.rmtree, _LINK.parent, ignore_errors=True)


def know_link() -> None:
    """Have processes of this one know the link."""
    os.environ[VARIABLE] = str(_LINK)


def leave_in(folder: Path) -> None:
    """Have stand-ins leave what they tell in a folder from now on."""
    _LINK.unlink(missing_ok=True)
    _LINK.symlink_to(folder)


def told_folder() -> Path:
    """The folder, asked for by a stand-in."""
    return Path(os.environ[VARIABLE])
