r"""What a step pays once for every kind of sharding that it uses: starts of collectives and launches of kernels.

TorchRec shards the tables of a module by sharding type: one input exchange, one lookup and one output exchange for
each type that a plan uses (``create_sharding_infos_by_sharding_device_group`` in ``embeddingbag.py`` and
``embedding.py``). A *kind* is one type in one module. Whatever it holds, a step starts these collectives once per kind:

=========  ===============================  =======================================  ===========================
route      ``input_comm`` [1]               ``forward_comm`` [2]                     ``backward_comm``
=========  ===============================  =======================================  ===========================
WHOLE      all-to-alls of lengths, values   all-to-all                               all-to-all
WORLD_SUM  the same                         reduce-scatter                           all-gather
HOST_SUM   the same                         reduce-scatter inside the group, then    the same, backwards, with
                                            all-to-all across groups                 all-gather inside the group
NONE       none                             none                                     all-reduce [3]
=========  ===============================  =======================================  ===========================

A group is a host, or a pod of hosts. A module with weighted features has an all-to-all of weights besides. Without a
pipeline each kind also exchanges the sizes of what follows; pipelines do that once for all kinds
(``_fuse_input_dist_splits``), which no plan changes. Rows of a sequence are never added up: the route of such a module
is WHOLE, or NONE.

:data:`LAUNCHES` are the kernels of a kind, each launched once per step [4]; :data:`DEDUPLICATED` those of a kind of
sequences that leaves out repeated ids, counted in the sources.

References
----------
.. [1] TorchRec 1.8.0 ``dist_data.py``: ``KJTAllToAllTensorsAwaitable`` runs an ``all_to_all_single`` for each tensor;
   ``sharding/{tw,rw,twrw}_sharding.py`` use it over all ranks, also where rows are cut inside a host.
.. [2] TorchRec 1.8.0 ``sharding/{tw,cw,rw,twrw,grid}_sharding.py`` and ``comm_ops.py``.
.. [3] The lookup of replicated tables is wrapped in a ``DistributedDataParallel`` of its own. One bucket is counted.
.. [4] FBGEMM 1.8.0 as counted in traces of training steps: permuted lengths and values (row cuts: two kernels that
   bucket ids before that; cuts inside a host: lengths and values permuted once more, ``_staggered_shuffle`` of
   ``twrw_sharding.py``); bounds check and lookup; permuted outputs; linear rows, five kernels of a radix sort, long
   rows found, rows of one block and of one warp updated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from cost_models.arrays import Codes, Floats, freeze
from cost_models.collectives.collective_bytes import Group
from cost_models.collectives.collectives import Network
from cost_models.hardware.hardware import Hardware
from cost_models.vocabulary import NUM_PHASES, Evidence, Phase, Route, Scheme

#: Kernels that each kind launches once per step, by phase; of a kind whose rows are cut ``BUCKETED`` more, inside a
#: host ``STAGGERED`` more than these.
LAUNCHES: Mapping[Phase, int] = MappingProxyType(
    {Phase.INPUT_COMM: 2, Phase.FORWARD_COMPUTE: 2, Phase.FORWARD_COMM: 1, Phase.BACKWARD_COMPUTE: 9}
)
BUCKETED: Mapping[Phase, int] = MappingProxyType({Phase.INPUT_COMM: 2})
STAGGERED: Mapping[Phase, int] = MappingProxyType({Phase.INPUT_COMM: 2})
#: Of a kind that leaves out repeated ids (FBGEMM ``jagged_unique_indices``, PyTorch ``_unique``, ``index_select`` and
#: its gradient): ids numbered, places, ten of a radix sort, neighbours compared, summed in two, scattered, kept in two,
#: lengths, ids of tables, offsets in two; rows repeated; zeros, and gradients added to them.
DEDUPLICATED: Mapping[Phase, int] = MappingProxyType(
    {Phase.INPUT_COMM: 22, Phase.FORWARD_COMM: 1, Phase.BACKWARD_COMM: 2}
)
#: Phases in which a kind that sends no rows launches kernels.
_LOCAL_PHASES = (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE)
LAUNCH_SECONDS = "kernel_launch_seconds"
#: Numbers that hold the starts of all kernels of a phase, by measurement: small kernels take longer than their launch.
START_FIELDS: Mapping[Phase, str] = MappingProxyType(
    {Phase.FORWARD_COMPUTE: "forward_start_seconds", Phase.BACKWARD_COMPUTE: "backward_start_seconds"}
)


class Kind(NamedTuple):
    """The tables of one module that have one sharding type: what has collectives and launches of its own."""

    scheme: Scheme
    is_pooled: bool
    is_weighted: bool
    is_pipelined: bool  # whether sizes are exchanged once for all kinds
    is_deduplicated: bool = False  # whether repeated ids are left out before they are exchanged


class Collective(NamedTuple):
    """A collective that a kind starts once per step."""

    phase: Phase
    operation: str
    direction: str  # of an all-to-all of rows: "forward" or "backward", else ""
    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What one start takes, and how well that is known."""

    seconds: float
    evidence: Evidence


NO_START = Start(seconds=0.0, evidence=Evidence.MEASURED)


class StartPrices(Protocol):
    """What starts take under a cost model."""

    def launches(self, phase: Phase, number: int, hardware: Hardware) -> Start:
        """Return what the launches of a phase's kernels take, so many of them."""
        ...

    def start(self, collective: Collective, network: Network) -> Start:
        """Return what a collective takes before its first byte moves."""
        ...

    def is_priced_once(self, collective: Collective, network: Network) -> bool:
        """Return whether the model's seconds of whole ranks hold one start of this collective already."""
        ...


@runtime_checkable
class PricesStarts(Protocol):
    """A cost model that prices starts; one that is none leaves them out."""

    @property
    def starts(self) -> StartPrices | None:
        """The prices; ``None`` for none."""
        ...


class AnalyticStarts:
    """Starts as the hardware profile has them; what it lacks is left out, since no number supports it."""

    def launches(self, phase: Phase, number: int, hardware: Hardware) -> Start:
        """Return what the profile has for all kernels of the phase, or ``kernel_launch_seconds`` for each."""
        of_all = START_FIELDS.get(phase)
        if of_all is not None and hardware.has(of_all):
            found, number = hardware.quantity(of_all, needed_for="the kernels of lookups"), 1
        elif hardware.has(LAUNCH_SECONDS):
            found = hardware.quantity(LAUNCH_SECONDS, needed_for="the launch of a kernel")
        else:
            return NO_START
        return Start(seconds=number * found.value, evidence=found.evidence)

    def start(self, collective: Collective, network: Network) -> Start:
        """Return the profile's start."""
        found = network.start_seconds(collective.operation, collective.group)
        return Start(seconds=found.value, evidence=found.evidence)

    def is_priced_once(self, collective: Collective, network: Network) -> bool:
        """Analytic seconds are those of bytes alone."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class KindStarts:
    """What kinds add to every rank's phases, once per step."""

    seconds: Floats  # (kinds, NUM_PHASES)
    evidence: Codes  # (kinds, NUM_PHASES); entries of zero seconds carry MEASURED

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        freeze(self)


def kind_starts(kinds: Sequence[Kind], prices: StartPrices, network: Network) -> KindStarts:
    """Return the starts of some kinds."""
    seconds = np.zeros((len(kinds), NUM_PHASES))
    evidence = np.full((len(kinds), NUM_PHASES), Evidence.MEASURED, dtype=np.int8)
    for row, kind in enumerate(kinds):
        parts = [(one.phase, prices.start(one, network)) for one in collectives_of(kind, network)]
        parts += [(phase, prices.launches(phase, number, network.hardware)) for phase, number in launches_of(kind)]
        for phase, start in parts:
            seconds[row, phase] += start.seconds
            if start.seconds > 0:
                evidence[row, phase] = max(evidence[row, phase], start.evidence)
    return KindStarts(seconds=seconds, evidence=evidence)


def starts_in_ranks(kinds: Sequence[Kind], prices: StartPrices, network: Network) -> Floats:
    """Return the starts that the seconds of whole ranks hold already where a plan uses ``kinds``, (NUM_PHASES,).

    Kinds that start the same collective are one collective there.
    """
    used = dict.fromkeys(one for kind in kinds for one in collectives_of(kind, network))
    seconds = np.zeros(NUM_PHASES)
    for one in used:
        if prices.is_priced_once(one, network):
            seconds[one.phase] += prices.start(one, network).seconds
    return seconds


def collectives_of(kind: Kind, network: Network) -> Iterator[Collective]:
    """Yield what a kind starts, in the order of the step; groups of one rank start nothing."""
    route = kind.scheme.route
    if route not in (Route.NONE, Route.WHOLE) and not kind.is_pooled:
        route = Route.WHOLE
    if route is Route.NONE and network.of_job.num_ranks > 1:
        yield Collective(Phase.BACKWARD_COMM, "all_reduce", "", "all" if network.job is None else "job")
    if route is Route.NONE or network.num_ranks == 1:
        return
    for _ in range(2 + kind.is_weighted + (not kind.is_pipelined)):
        yield Collective(Phase.INPUT_COMM, "all_to_all", "backward", "all")
    if route is Route.WHOLE:
        yield Collective(Phase.FORWARD_COMM, "all_to_all", "forward", "all")
        yield Collective(Phase.BACKWARD_COMM, "all_to_all", "backward", "all")
    elif route is Route.WORLD_SUM:
        yield Collective(Phase.FORWARD_COMM, "reduce_scatter", "", "all")
        yield Collective(Phase.BACKWARD_COMM, "all_gather", "", "all")
    else:
        if network.ranks_per_group > 1:
            yield Collective(Phase.FORWARD_COMM, "reduce_scatter", "", "inside")
            yield Collective(Phase.BACKWARD_COMM, "all_gather", "", "inside")
        if network.num_groups > 1:
            yield Collective(Phase.FORWARD_COMM, "all_to_all", "forward", "across")
            yield Collective(Phase.BACKWARD_COMM, "all_to_all", "backward", "across")


def launches_of(kind: Kind) -> Iterator[tuple[Phase, int]]:
    """Yield how many kernels a kind launches in each phase."""
    route = kind.scheme.route
    for phase, number in LAUNCHES.items():
        if route is not Route.NONE or phase in _LOCAL_PHASES:
            bucketed = BUCKETED.get(phase, 0) if kind.scheme.facts.cuts_rows else 0
            yield phase, number + bucketed + (STAGGERED.get(phase, 0) if route is Route.HOST_SUM else 0)
    if kind.is_deduplicated:
        yield from DEDUPLICATED.items()
