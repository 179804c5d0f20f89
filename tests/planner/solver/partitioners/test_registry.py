import subprocess
import sys

import pytest

from planner.solver.partitioners.registry import make_partitioner, partitioner_names


def test_every_partitioner_has_the_name_that_it_is_found_by() -> None:
    names = [name for name in partitioner_names() if name != "lns"]
    assert len(names) == 6
    for name in names:
        assert make_partitioner(name).name == name


def test_the_name_of_the_removed_search_means_the_portfolio() -> None:
    assert make_partitioner("lns").name == "portfolio"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(KeyError):
        make_partitioner("simplex")


def test_who_reads_specs_does_not_load_the_solvers() -> None:
    """They take a second or two, which servers and commands that plan nothing need not wait for."""
    ask = (
        "import sys, api.http.app, api.specs.parse, planner.solver.partitioners.kernels.cache;"
        "print([m for m in ('ortools.sat', 'pandas', 'numba', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
