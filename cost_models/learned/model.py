"""The learned cost model: fused lookups and collectives as they were measured, all else as the roofline says.

A shard outside the measured range takes the roofline's growth from where measurements end
(:mod:`cost_models.learned.reach.fallback`), and :meth:`LearnedModel.unknown` says why. Phases that nothing was measured
of keep the roofline's seconds as they are.

Where a launch was only timed as a whole, its seconds are divided between forward and backward in the roofline's ratio:
their sum is measured, the division is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cost_models.analytic.additive import Additive
from cost_models.analytic.roofline import RooflineModel
from cost_models.arrays import Bools, Floats, Ints
from cost_models.collectives.collective_bytes import Group
from cost_models.collectives.starts import StartPrices
from cost_models.hardware.hardware import Hardware
from cost_models.learned.exchange.collectives import Collective, learned_and_left, unmeasured
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.learned.exchange.starts import LearnedStarts
from cost_models.learned.lookups.columns import LookupColumns, columns_of_work
from cost_models.learned.lookups.compute import sum_by_rank
from cost_models.learned.lookups.fitted import FittedCompute
from cost_models.learned.ranks.analytic import analytic_seconds
from cost_models.learned.ranks.assigned import LearnedAssignment, RankLaw
from cost_models.learned.ranks.laws import COMPUTE_PHASES, by_phase, compute_law, compute_parts
from cost_models.learned.ranks.tally import RankTally, by_rank
from cost_models.learned.reach.fallback import anchored, nearest_measured
from cost_models.learned.reach.ranges import known_shards, rank_sums, why_unknown
from cost_models.protocol import CostModel, RankSeconds, ShardSeconds, ShardWork
from cost_models.vocabulary import NUM_PHASES, Evidence, Phase

#: Phase, operation and group of a collective.
SlopeKey = tuple[Phase, str, Group]
#: Of float32 through logarithms, exponents up to 40 and sums, whose order depends on how many shards are priced.
ROUNDING = 1e-5


@dataclass(frozen=True, kw_only=True)
class LearnedModel:
    """An assignment model that was fitted to measurements of one device; see ``AssignmentModel``."""

    name: str
    device: str
    digest: str  # of the document that it was read from
    fitted: FittedCompute | None
    exchange: LearnedExchange | None
    #: what the document says of its rows and its held-out figures
    trained_on: Mapping[str, object] = field(default_factory=dict)
    figures: Mapping[str, object] = field(default_factory=dict)
    rounding: float = ROUNDING

    @property
    def version(self) -> str:
        """The beginning of the document's digest."""
        return self.digest.removeprefix("sha256:")[:12]

    @property
    def counted_phases(self) -> Bools:
        """All of them."""
        return np.ones(NUM_PHASES, dtype=np.bool_)

    @property
    def coverage(self) -> float:
        """Probability that a measured time lies within its interval; the lowest of what was calibrated."""
        stated = [interval.coverage for interval in self.fitted.intervals] if self.fitted else []
        return min([*stated, *([self.exchange.coverage] if self.exchange else [])])

    @cached_property
    def analytic(self) -> CostModel:
        """The model that answers where nothing was measured."""
        return RooflineModel()

    @property
    def starts(self) -> StartPrices:
        """Those of measured curves, else the hardware profile's."""
        return LearnedStarts(exchange=self.exchange, has_launches=self.fitted is not None)

    def __post_init__(self) -> None:
        """Reject a model that learned nothing."""
        if self.fitted is None and self.exchange is None:
            raise ValueError("Expected a fitted compute model, an exchange model, or both.")

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price every row of ``work`` as on a typical rank."""
        return self.priced(work, hardware, None, {})

    def priced(
        self, work: ShardWork, hardware: Hardware, prices: Floats | None, slopes: Mapping[SlopeKey, float]
    ) -> ShardSeconds:
        """Price every row by prices of parts and seconds per byte of collectives; typical ones if not given."""
        columns, known, collectives, base = self._inputs(work, hardware)
        seconds, evidence = base.seconds.copy(), base.evidence.copy()
        if self.fitted:
            learned = by_phase(self._shard_prices(work, columns, prices), seconds[:, COMPUTE_PHASES])
            self._anchor(seconds, ~known, work, hardware, prices)
            seconds[:, COMPUTE_PHASES] = np.where(known[:, None], learned, seconds[:, COMPUTE_PHASES])
            evidence[:, COMPUTE_PHASES] = np.where(known[:, None], Evidence.MEASURED, evidence[:, COMPUTE_PHASES])
        for one in collectives:
            slope = slopes.get((one.phase, one.kind.operation, one.group))
            total_bytes = one.message_bytes * work.num_ranks
            if slope is None:
                assert self.exchange is not None
                seconds[:, one.phase] += self.exchange.shard_seconds(
                    one.kind, one.shard_bytes, num_ranks=work.num_ranks, total_bytes=total_bytes
                )
            else:
                seconds[:, one.phase] += one.shard_bytes * slope
            if self._is_estimated(one, total_bytes):
                evidence[one.shard_bytes > 0, one.phase] = Evidence.ESTIMATED
        return ShardSeconds(seconds=seconds, evidence=evidence)

    def predict_ranks(self, work: ShardWork, rank: Ints, hardware: Hardware) -> RankSeconds:
        """Price the shards of ``work``, of which shard i lies on ``rank[i]``, together."""
        columns, known, collectives, base = self._inputs(work, hardware)
        left = base.seconds.copy()
        ranks = RankTally(work.num_ranks)
        if self.fitted:
            self._rank_compute(ranks, left, known, work, columns, rank, hardware)
        for one in collectives:
            self._rank_collective(ranks, one, rank)
        ranks.add_analytic(left, base.evidence, rank)
        return ranks.result()

    def assigned(self, work: ShardWork, rank: Ints, hardware: Hardware) -> LearnedAssignment:
        """Return the assignment, ready to price changes."""
        columns, known, collectives, base = self._inputs(work, hardware)
        left = base.seconds.copy()
        parts: Floats = left
        law: RankLaw = np.copy  # analytic seconds of shards add up
        if self.fitted:
            contention, is_known = self.fitted.contention.of(work.ranks_per_host), known[:, None]
            divided = left[:, COMPUTE_PHASES] * is_known
            left[:, COMPUTE_PHASES] *= ~is_known
            self._anchor(left, ~known, work, hardware, None)
            learned = self.fitted.compute.parts(columns, contention) * is_known
            parts, law = compute_parts(learned, left, divided, is_known), compute_law(self.fitted.compute, contention)
        return LearnedAssignment.of(
            parts=parts,
            law=law,
            collectives=collectives,
            collective_law=self._collective_seconds,
            rank=rank,
            num_ranks=work.num_ranks,
        )

    def around(self, work: ShardWork, rank: Ints, hardware: Hardware) -> CostModel:
        """Return an additive model, linear near the assignment of ``work`` to ``rank``."""
        prices = None
        if self.fitted:
            columns = columns_of_work(work)
            known = self._known(work, columns)
            contention = self.fitted.contention.of(work.ranks_per_host)
            parts = self.fitted.compute.parts(columns, contention)
            sums = sum_by_rank(parts[known], rank[known], work.num_ranks)
            prices = self.fitted.compute.linear_at(sums, contention)
        slopes: dict[SlopeKey, float] = {}
        for one in learned_and_left(work, self.exchange)[0]:
            assert self.exchange is not None
            held = _held(one, by_rank(one.shard_bytes, rank, work.num_ranks))
            slopes[one.phase, one.kind.operation, one.group] = self.exchange.seconds_per_byte(one.kind, held)
        return LinearModel(model=self, prices=prices, slopes=slopes)

    def unknown(self, work: ShardWork, hardware: Hardware) -> tuple[str, ...]:
        """Return, for each shard, why its lookups are priced by the analytic model; ``""`` if they are learned."""
        if self.fitted is None:
            return ("lookups were not measured",) * work.num_shards
        contention = self.fitted.contention
        if not contention.holds(work.ranks_per_host):
            reason = f"{work.ranks_per_host} ranks per host; measured {contention.text()}"
            return (reason,) * work.num_shards
        return why_unknown(work, columns_of_work(work), self.fitted.ranges)

    def unmeasured_collectives(self, work: ShardWork) -> tuple[tuple[Phase, str], ...]:
        """Return phase and reason of the collectives that are priced by the analytic model."""
        return unmeasured(work, self.exchange)

    def _inputs(
        self, work: ShardWork, hardware: Hardware
    ) -> tuple[LookupColumns, Bools, tuple[Collective, ...], ShardSeconds]:
        """Return columns, whose lookups are learned, learned collectives, and the analytic seconds of all else.

        To divide what was timed as a whole, analytic seconds of learned lookups are needed, too.
        """
        columns = columns_of_work(work)
        known = self._known(work, columns)
        collectives, left = learned_and_left(work, self.exchange)
        divides = self.fitted is not None and len(self.fitted.compute.targets) < len(COMPUTE_PHASES)
        base = analytic_seconds(work, hardware, np.ones_like(known) if divides else ~known, left)
        return columns, known, collectives, base

    def _known(self, work: ShardWork, columns: LookupColumns) -> Bools:
        """Return whose lookups are learned."""
        if self.fitted is None or not self.fitted.contention.holds(work.ranks_per_host):
            return np.zeros(work.num_shards, dtype=np.bool_)
        return known_shards(work, columns, self.fitted.ranges)

    def _shard_prices(self, work: ShardWork, columns: LookupColumns, prices: Floats | None) -> Floats:
        """Return the additive seconds of shards, (num_shards, num_targets)."""
        assert self.fitted is not None
        contention = self.fitted.contention.of(work.ranks_per_host)
        return self.fitted.compute.shard_seconds(columns, contention, prices)

    def _anchor(
        self, seconds: Floats, unknown: Bools, work: ShardWork, hardware: Hardware, prices: Floats | None
    ) -> None:
        """Anchor the analytic compute seconds of unknown shards where measurements end."""
        if not np.any(unknown):
            return
        assert self.fitted is not None
        nearest = nearest_measured(work.take(np.flatnonzero(unknown)), self.fitted.ranges)
        everywhere = np.ones(nearest.num_shards, dtype=np.bool_)
        analytic = analytic_seconds(nearest, hardware, everywhere, ()).seconds[:, COMPUTE_PHASES]
        learned = by_phase(self._shard_prices(nearest, columns_of_work(nearest), prices), analytic)
        places = np.ix_(np.flatnonzero(unknown), np.array(COMPUTE_PHASES))
        seconds[places] = anchored(learned, seconds[places], analytic)

    def _rank_compute(
        self,
        ranks: RankTally,
        left: Floats,
        known: Bools,
        work: ShardWork,
        columns: LookupColumns,
        rank: Ints,
        hardware: Hardware,
    ) -> None:
        """Add the learned seconds of every rank, and leave those of unknown shards, anchored, in ``left``."""
        assert self.fitted is not None
        if not np.all(known):
            columns = columns.take(known)
        contention = self.fitted.contention.of(work.ranks_per_host)
        sums = sum_by_rank(self.fitted.compute.parts(columns, contention), rank[known], work.num_ranks)
        seconds = self.fitted.compute.rank_seconds(sums, contention)
        beyond = self.fitted.contention.doublings_beyond(work.ranks_per_host)
        held = rank_sums(columns, rank[known], work.num_ranks)
        reach = self.fitted.reach(seconds, held, contention, beyond)
        weakest = np.where((beyond > 0) | (self.fitted.excess(held) > 0), Evidence.ESTIMATED, Evidence.MEASURED)
        shares = np.stack(
            [by_rank(left[known, phase], rank[known], work.num_ranks) for phase in COMPUTE_PHASES], axis=1
        )
        split = by_phase(seconds, shares)
        reach = np.broadcast_to(reach, split.shape)
        for i, phase in enumerate(COMPUTE_PHASES):
            ranks.add(
                phase, split[:, i], split[:, i] * np.exp(-reach[:, i]), split[:, i] * np.exp(reach[:, i]), weakest
            )
        left[:, COMPUTE_PHASES] *= ~known[:, None]
        self._anchor(left, ~known, work, hardware, None)

    def _rank_collective(self, ranks: RankTally, one: Collective, rank: Ints) -> None:
        held = _held(one, by_rank(one.shard_bytes, rank, ranks.num_ranks))
        seconds, lower, upper = self._collective_times(one, held)
        known = Evidence.ESTIMATED if self._is_estimated(one, float(held.sum())) else Evidence.MEASURED
        ranks.add(one.phase, seconds, lower, upper, np.full(ranks.num_ranks, known))

    def _is_estimated(self, one: Collective, total_bytes: float) -> bool:
        """Return whether a curve goes on beyond what was measured."""
        assert self.exchange is not None
        return self.exchange.is_beyond(one.kind, total_bytes)

    def _collective_seconds(self, one: Collective, held: Floats) -> Floats:
        """Return the seconds of ranks that hold bytes, both (..., num_ranks)."""
        return self._collective_times(one, _held(one, held))[0]

    def _collective_times(self, one: Collective, held: Floats) -> tuple[Floats, Floats, Floats]:
        assert self.exchange is not None
        even = np.broadcast_to(held.mean(axis=-1, keepdims=True), held.shape)
        sent, received = (even, held) if one.kind.direction == "backward" else (held, even)
        return self.exchange.rank_seconds(one.kind, sent, received)


@dataclass(frozen=True, kw_only=True)
class LinearModel(Additive):
    """The additive model that agrees best with a learned one near an assignment."""

    model: LearnedModel
    prices: Floats | None
    slopes: Mapping[SlopeKey, float]

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price every row of ``work``."""
        return self.model.priced(work, hardware, self.prices, self.slopes)


def _held(one: Collective, held: Floats) -> Floats:
    """Return the bytes that count, (..., num_ranks): but for all-to-alls, all have what the fullest rank has."""
    return held if one.kind.operation == "all_to_all" else np.broadcast_to(held.max(axis=-1, keepdims=True), held.shape)
