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


def know_link() -> None:
    """Make the link's folder, and have this process and those that it begins know the link."""
    # Not on import: stand-ins import this too, in processes that are killed and would leave their folders behind.
    folder = Path(tempfile.mkdtemp(prefix="shardplan-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[VARIABLE] = str(folder / "folder")


def leave_in(folder: Path) -> None:
    """Have stand-ins leave what they tell in a folder from now on."""
    link = given_folder()
    link.unlink(missing_ok=True)
    link.symlink_to(folder)


def given_folder() -> Path:
    """The link, asked for by a stand-in."""
    return Path(os.environ[VARIABLE])
