"""A planner in the place of TorchRec's: it asks the service, and plans here where no service answers."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torchrec.distributed.planner.types import ParameterConstraints, Topology
from torchrec.distributed.sharding_plan import get_default_sharders
from torchrec.distributed.types import ModuleSharder, ShardingPlan, ShardingPlanner

from ..client import PlannerClient
from ..documents import parse_plan
from ..errors import ClientError, PlanRejected, PlanUnavailable, ProblemError, SolveTimeout, Unreachable
from ..index_dedup import index_dedup_differences
from ..live_table import LiveTable
from ..local_solve import solve_locally
from ..plan_types import PlanDocument
from ..verdicts import verdict_of
from .constraints import (
    feature_numbers,
    fused_optimizer,
    hardware_object,
    table_constraints,
    with_runtime_settings,
    within_limits,
)
from .handshake import handshake
from .model import live_tables
from .plan import to_sharding_plan
from .sharders import sharder_limits, uses_index_dedup
from .spec import spec_from_model

log = logging.getLogger(__name__)

Spec = dict[str, Any]


class ServicePlanner(ShardingPlanner):  # type: ignore[misc]
    """Stands where ``EmbeddingShardingPlanner`` stood.

    Parameters
    ----------
    url
        The service, such as ``http://planner:8080``; ``None`` plans on this machine alone.
    hardware
        Id of a hardware profile, completed with the job's ranks and the topology's memory; or the whole ``hardware``
        object of a spec. A topology has no rates that a plan could be priced with.
    topology, batch_size, constraints
        As TorchRec's planner has them; without a topology, the ranks are those of the default process group.
    spec
        Fields of the spec to add or replace: ``objective``, ``solver``, ``name`` and the like.
    access
        The spec's ``access`` objects, by table.
    wait_seconds
        How long a solve of the service is waited for.
    local
        Plans a spec on this machine where the service does not answer, or not in time; ``None`` fails instead. What the
        service refuses, or finds no plan for, is not asked again here.
    client
        In place of one that is made for ``url``.
    """

    def __init__(
        self,
        url: str | None,
        *,
        hardware: str | Mapping[str, object],
        batch_size: int,
        topology: Topology | None = None,
        constraints: Mapping[str, ParameterConstraints] | None = None,
        spec: Mapping[str, object] | None = None,
        access: Mapping[str, Mapping[str, object]] | None = None,
        wait_seconds: float = 300.0,
        local: Callable[[Spec], bytes] | None = solve_locally,
        client: PlannerClient | None = None,
    ) -> None:
        self._url, self._hardware, self._batch_size, self._topology = url, hardware, batch_size, topology
        self._constraints, self._changes, self._access = constraints or {}, spec or {}, access or {}
        self._wait_seconds, self._local, self._client = wait_seconds, local, client
        #: Who made the last plan of this process, ``service`` or ``local``; with the plan's document.
        self.source: str | None = None
        self.document: PlanDocument | None = None

    def plan(self, module: nn.Module, sharders: Sequence[ModuleSharder[nn.Module]] | None = None) -> ShardingPlan:
        """Plan a model, in one process: the plan is compared with the model, and with nothing of other ranks.

        Raises
        ------
        ClientError
            Why there is no plan, as in :meth:`collective_plan`.
        """
        spec = self.spec_of(module, sharders)
        self.document, _ = parse_plan(self._ask(spec))
        self._log_verdict(self.document)
        used = uses_index_dedup(module, get_default_sharders() if sharders is None else sharders)
        if differences := index_dedup_differences(self.document, used):
            raise PlanRejected([one.text for one in differences], verdict_of(differences))
        plan = to_sharding_plan(
            self.document,
            module=module,
            device=self._device,
            world_size=self.document["world_size"],
            ranks_per_host=self.document["ranks_per_host"],
        )
        return with_runtime_settings(plan, self._constraints)

    def collective_plan(
        self,
        module: nn.Module,
        sharders: Sequence[ModuleSharder[nn.Module]] | None = None,
        pg: dist.ProcessGroup | None = None,
    ) -> ShardingPlan:
        """Plan a model on rank 0, and shake hands over the plan on all ranks.

        Raises
        ------
        PlanUnavailable
            Rank 0 has no plan; every rank raises the same.
        PlanRejected
            The plan and the job do not belong together.
        """
        agreed = handshake(
            lambda: self._ask(self.spec_of(module, sharders)),
            module=module,
            device=self._device,
            process_group=pg,
            sharders=get_default_sharders() if sharders is None else sharders,
        )
        plan = agreed.sharding_plan()
        self.document = agreed.document
        if self.document is not None and dist.get_rank(pg) == 0:
            self._log_verdict(self.document)
        return with_runtime_settings(plan, self._constraints)

    def spec_of(self, module: nn.Module, sharders: Sequence[ModuleSharder[nn.Module]] | None = None) -> Spec:
        """Return the spec that is asked for.

        Raises
        ------
        UnsupportedModel
            The model, or what was text of it, cannot be planned.
        """
        given = get_default_sharders() if sharders is None else sharders
        limits = sharder_limits(module, given, self._device)
        tables = live_tables(module)
        factors, poolings = feature_numbers(tables, self._constraints, self._batch_size)
        spec: Spec = spec_from_model(
            module,
            batch_size_per_rank=self._batch_size,
            hardware=hardware_object(self._hardware, self._topology),
            pooling_factors=factors,
            optimizer=fused_optimizer(given),
            access=self._access,
            constraints=within_limits(tables, table_constraints(self._constraints), limits),
        )
        if uses_index_dedup(module, given):
            spec["model"]["use_index_dedup"] = "on"
        return {**_with_poolings(spec, tables, poolings), **self._changes}

    def _log_verdict(self, document: PlanDocument) -> None:
        """Say in the log how good the plan is, in the words of the plan's summary."""
        verdict = document.get("verdict")
        text = "" if verdict is None else f": {verdict['text']}"
        log.info("plan %s, source %s%s", document["plan_digest"], self.source, text)

    @property
    def _device(self) -> str:
        if self._topology is not None:
            return str(self._topology.compute_device)
        return "cuda" if torch.cuda.is_available() else "cpu"

    def _ask(self, spec: Spec) -> bytes:
        """Return the bytes of a plan: of the service, or else made here."""
        trouble: ClientError | None = None
        if self._url is not None or self._client is not None:
            try:
                content = self._of_service(spec)
            except (Unreachable, SolveTimeout, ProblemError) as error:
                if isinstance(error, ProblemError) and error.status < 500:  # it will say so again to every rank
                    raise
                trouble = error
            else:
                self.source = "service"
                return content
        content = self._made_here(spec, trouble)
        self.source = "local"
        return content

    def _of_service(self, spec: Spec) -> bytes:
        if self._client is not None:
            return self._client.plan_of(self._client.solve(spec, wait_seconds=self._wait_seconds)).received
        assert self._url is not None
        with PlannerClient(self._url) as client:
            return client.plan_of(client.solve(spec, wait_seconds=self._wait_seconds)).received

    def _made_here(self, spec: Spec, trouble: ClientError | None) -> bytes:
        if self._local is None:
            raise trouble or PlanUnavailable("neither a service nor a local solve was given")
        if trouble is not None:
            log.warning("planning on this machine, for the service gave no plan: %s", trouble)
        try:
            return self._local(spec)
        except ClientError as error:
            if trouble is None:
                raise
            raise PlanUnavailable(f"the service gave no plan: {trouble}; and here: {error}") from error


def _with_poolings(spec: Spec, tables: Sequence[LiveTable], poolings: Mapping[tuple[str, str], float]) -> Spec:
    """Return a spec of these tables with the poolings per sample of their features, if they are not one."""
    for live, table in zip(tables, spec["model"]["tables"], strict=True):
        for feature in table["features"]:
            if poolings[live.name, feature["name"]] != 1.0:
                feature["num_poolings"] = poolings[live.name, feature["name"]]
    return spec
