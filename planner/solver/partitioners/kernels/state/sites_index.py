"""How sites are counted: ranks first, then hosts, each of as many ranks."""

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.state.state import RANK, State
from planner.solver.partitioners.local_search.search_data import Data


@compiled
def ranks_of_site(data: Data, scope: int) -> int:
    """Return how many ranks a rank, or a host, has."""
    return 1 if scope == RANK else data.rank_host.shape[0] // data.host_allowed.shape[1]


@compiled
def num_sites(data: Data, scope: int) -> int:
    """Return how many ranks, or hosts, there are."""
    return data.rank_host.shape[0] if scope == RANK else data.host_allowed.shape[1]


@compiled
def place_of(state: State, scope: int, site: int) -> int:
    """Return a rank's, or a host's, place among all ranks and hosts."""
    return site if scope == RANK else state.loads.shape[0] + site
