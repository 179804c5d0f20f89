"""How all ranks come to one verdict on a plan.

Three small exchanges, whatever the outcome, so that no rank waits for one that has given up:
every rank sends what it knows of itself; rank 0 sends the plan to those that have none (and its
tables, if another rank has other ones); every rank sends what speaks against the plan. The
verdict is computed from what was exchanged, and from nothing else.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch.distributed as dist
from torch import nn
from torchrec.distributed.types import ModuleSharder, ShardingPlan

from ..check import shape_differences
from ..documents import parse_plan
from ..errors import ClientError, PlanRejected, PlanUnavailable, UnsupportedModel
from ..index_dedup import embedding_collection_sharder_arguments, index_dedup_differences
from ..job import RankFacts, expected_differences, job_issues
from ..live_table import LiveTable, rank_differences
from ..model_check import pairs_by_path, plan_differences, spec_differences
from ..plan_types import PlanDocument
from ..replica_groups import as_planned, dmp_collection_arguments, group_differences
from ..verdicts import Difference, Verdict, ranks_text, refuse, verdict_of
from .facts import MemoryProbe, rank_facts
from .gather import gathered
from .model import live_tables
from .plan import assemble
from .sharders import uses_index_dedup

#: The plan's bytes, as every rank may have them from a file, or what returns them on rank 0.
Source = bytes | Callable[[], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """What all ranks agreed on."""

    verdict: Verdict
    reasons: tuple[str, ...]  # against the plan; empty if the verdict is ``go``
    warnings: tuple[str, ...]
    document: PlanDocument | None = field(repr=False)  # none if the bytes are no plan
    replanned: bool = False  # whether it is about a plan that ``replan`` brought
    agreed_plan: ShardingPlan | None = field(repr=False)  # none if the verdict is not ``go``

    def sharding_plan(self) -> ShardingPlan:
        """Return what ``DistributedModelParallel`` takes.

        Raises
        ------
        PlanRejected
            The verdict is not ``go``; every rank raises the same text.
        """
        if self.agreed_plan is None:
            raise PlanRejected(self.reasons, self.verdict)
        return self.agreed_plan

    def dmp_collection_arguments(self) -> dict[str, object]:
        """Return what ``DMPCollection`` gets in addition to module, device, plan and process group.

        Empty if the plan has one group of all ranks, for ``DistributedModelParallel``.

        Raises
        ------
        PlanRejected
            The verdict is not ``go``; every rank raises the same text.
        """
        if self.agreed_plan is None or self.document is None:
            raise PlanRejected(self.reasons, self.verdict)
        return dmp_collection_arguments(self.document)

    def embedding_collection_sharder_arguments(self) -> dict[str, bool]:
        """Return what ``EmbeddingCollectionSharder`` gets: whether the plan leaves out repeated ids.

        Raises
        ------
        PlanRejected
            The verdict is not ``go``; every rank raises the same text.
        """
        if self.agreed_plan is None or self.document is None:
            raise PlanRejected(self.reasons, self.verdict)
        return embedding_collection_sharder_arguments(self.document)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """What a rank sends first."""

    facts: RankFacts | None
    reasons: tuple[Difference, ...]  # why there are no facts
    has_plan: bool
    no_plan: str | None  # why it could not load the plan
    can_replan: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a rank sends last; ``shared`` and ``warnings`` are rank 0's."""

    digest: str | None
    own: tuple[Difference, ...]
    shared: tuple[Difference, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """This rank, and the options of its launcher."""

    number: int
    group: dist.ProcessGroup
    module: nn.Module
    device: str
    spec: Mapping[str, object] | None
    can_replan: bool
    ranks_per_host: int | None
    sharding_group_size: int | None
    contiguous_groups: bool
    free_memory: MemoryProbe
    sharders: Sequence[ModuleSharder[nn.Module]] | None

    def shake(self, source: Source, expected_digest: str | None, purpose: str) -> tuple[Handshake, bool]:
        """Do one handshake; returns it, and whether rank 0 can ask for a new plan."""
        content, failure = self._load(source)
        tables, facts, reasons = self._look(expected_digest)
        why = None if failure is None else f"rank {self.number} could not {purpose}: {_text(failure)}"
        report = _Report(
            facts=facts,
            reasons=tuple(reasons),
            has_plan=content is not None,
            no_plan=why,
            can_replan=self.can_replan,
        )
        reports = gathered(report, self.group)
        if reports[0].no_plan is not None:
            raise PlanUnavailable(reports[0].no_plan) from failure
        if not all(report.has_plan for report in reports):
            received = self._from_first(content)
            content = received if content is None else content
        first_tables = None
        fingerprints = {other.facts.fingerprint for other in reports if other.facts is not None}
        if reports[0].facts is not None and len(fingerprints) > 1:
            first_tables = self._from_first(tables)
        document, agreed_plan, answer = self._check_entry(content, tables, report, reports, first_tables)
        answers = gathered(answer, self.group)
        verdict, texts = _outcome(answers)
        found = Handshake(
            verdict=verdict,
            reasons=texts,
            warnings=answers[0].warnings,
            document=document,
            agreed_plan=agreed_plan if verdict == "go" else None,
        )
        return found, reports[0].can_replan

    def _load(self, source: Source) -> tuple[bytes | None, Exception | None]:
        if isinstance(source, bytes):
            return source, None
        if self.number:
            return None, None
        try:
            content = source()
            if not isinstance(content, bytes):
                raise TypeError(f"Expected bytes, found {type(content).__name__}.")
            return content, None
        except Exception as error:  # the other ranks wait for this one
            return None, error

    def _look(self, expected_digest: str | None) -> tuple[tuple[LiveTable, ...], RankFacts | None, list[Difference]]:
        """What this rank knows of itself, or why it does not."""
        try:
            tables = live_tables(self.module)
            facts = rank_facts(
                self.module,
                tables,
                device=self.device,
                group=self.group,
                ranks_per_host=self.ranks_per_host,
                sharding_group_size=self.sharding_group_size,
                contiguous_groups=self.contiguous_groups,
                expected_digest=expected_digest,
                memory=self.free_memory,
            )
        except UnsupportedModel as error:
            return (), None, [refuse(reason) for reason in error.reasons]
        except Exception as error:  # whatever it is, the other ranks must hear of it
            return (), None, [refuse(_text(error))]
        return tables, facts, []

    def _check_entry(
        self,
        content: bytes | None,
        tables: tuple[LiveTable, ...],
        report: _Report,
        reports: Sequence[_Report],
        first_tables: tuple[LiveTable, ...] | None,
    ) -> tuple[PlanDocument | None, ShardingPlan | None, _Answer]:
        """What speaks against the plan as this rank sees it, and on rank 0 as all ranks together do."""
        own = list(report.reasons)
        document = digest = agreed_plan = None
        shared: list[Difference] = []
        warnings: list[str] = []
        facts = report.facts
        try:
            document, digest = parse_plan(content or b"")
            misshapen = shape_differences(document)
            own += misshapen
            if facts is not None and not misshapen:
                facts = as_planned(facts, document)
            if facts is not None:
                own += expected_differences(facts.expected_digest, digest)
                own += [] if first_tables is None else rank_differences(tables, first_tables)
                own += [] if self.spec is None else spec_differences(self.spec, tables)
                used = None if self.sharders is None else uses_index_dedup(self.module, self.sharders)
                own += index_dedup_differences(document, used)
            if facts is not None and not misshapen:
                own += plan_differences(
                    document,
                    tables,
                    digest=digest,
                    world_size=facts.sharding_group_size,
                    ranks_per_host=facts.ranks_per_host,
                    device=self.device,
                )
            every = [other.facts for other in reports if other.facts is not None]
            if self.number == 0 and len(every) == len(reports):
                if not misshapen:
                    every = [as_planned(one, document) for one in every]
                    shared = group_differences(document, every)
                issues, warnings = job_issues(None if misshapen else document, every, tables)
                shared = [*shared, *issues]
            if not own and facts is not None:
                by_path = pairs_by_path(document, tables)
                agreed_plan = assemble(by_path, device=self.device, ranks_per_host=facts.ranks_per_host)
        except Exception as error:  # as above
            own.append(refuse(_text(error)))
        return (
            document,
            agreed_plan,
            _Answer(digest=digest, own=tuple(own), shared=tuple(shared), warnings=tuple(warnings)),
        )

    def _from_first(self, mine: Any) -> Any:
        sent = [mine if self.number == 0 else None]
        dist.broadcast_object_list(sent, group=self.group, group_src=0)
        return sent[0]


def _outcome(answers: Sequence[_Answer]) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict of all ranks and its reasons, each with the ranks that have it."""
    ranks_of: dict[Difference, list[int]] = defaultdict(list)
    for rank, answer in enumerate(answers):
        if None not in (answer.digest, answers[0].digest) and answer.digest != answers[0].digest:
            ranks_of[refuse(f"has the plan {answer.digest}, rank 0 has {answers[0].digest}")].append(rank)
    for rank, answer in enumerate(answers):
        for difference in dict.fromkeys(answer.own):
            ranks_of[difference].append(rank)
    shared = answers[0].shared
    texts = [difference.text for difference in shared]
    for difference, ranks in ranks_of.items():
        who = "every rank" if len(ranks) == len(answers) > 1 else ranks_text(ranks)
        texts.append(f"{who}: {difference.text}")
    return verdict_of([*shared, *ranks_of]), tuple(texts)


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, ClientError) else f"{type(error).__name__}: {error}"
