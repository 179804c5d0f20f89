"""Stand-ins for the fit that misbehave; processes find them by module and name."""

import os
import signal
import time

from api.specs.references.learned_model import fit
from cost_models.measurements.schema import Measurements
from tests.support.service.stand_ins import given_folder


def hang(_rows: Measurements, _name: str, _seed: int) -> bytes:
    """Never ends; leaves its process id in the folder named by ``tests.support.service.stand_ins``."""
    folder = given_folder()
    (folder / "pid.part").write_text(str(os.getpid()))
    (folder / "pid.part").rename(folder / "pid")
    time.sleep(3600)
    raise AssertionError("nobody stopped this")


def die(_rows: Measurements, _name: str, _seed: int) -> bytes:
    """Is ended from outside."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody is here")


def defect(_rows: Measurements, _name: str, _seed: int) -> bytes:
    """Has a defect."""
    raise RuntimeError("this text must not leave the log")


def lack_torch(_rows: Measurements, _name: str, _seed: int) -> bytes:
    """Finds no torch, as an installation without the extra."""
    import api.specs.references.learned_model as learned_models

    def missing(*_: object, **__: object) -> dict[str, object]:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    learned_models.fit_model = missing
    return fit(_rows, name=_name, seed=_seed)


def load_torch(_rows: Measurements, _name: str, _seed: int) -> bytes:
    """Loads what training needs, and fits."""
    import torch

    assert float(torch.ones(64, 64).sum()) == 4096.0
    return fit(_rows, name=_name, seed=_seed)
