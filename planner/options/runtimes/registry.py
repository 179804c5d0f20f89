"""Every runtime that plans can be made for: its rules, and what writes plans in a form of its own, if it has one."""

from planner.options.runtimes.base import Runtime
from planner.options.runtimes.distributed_embeddings.export import to_distributed_embeddings
from planner.options.runtimes.distributed_embeddings.rules import DistributedEmbeddings
from planner.options.runtimes.dynamicemb.export import to_dynamicemb
from planner.options.runtimes.dynamicemb.rules import DynamicEmb
from planner.options.runtimes.export import Export
from planner.options.runtimes.generic import Generic
from planner.options.runtimes.hugectr.export import to_hugectr
from planner.options.runtimes.hugectr.rules import HugeCTR
from planner.options.runtimes.sparsecore.export import to_sparsecore
from planner.options.runtimes.sparsecore.rules import SparseCore
from planner.options.runtimes.torcheasyrec.export import to_torcheasyrec
from planner.options.runtimes.torcheasyrec.rules import TorchEasyRec
from planner.options.runtimes.torchrec.export import to_torchrec
from planner.options.runtimes.torchrec.rules import TorchRec

_ALL: tuple[tuple[Runtime, Export | None], ...] = (
    (TorchRec(), to_torchrec),
    (Generic(), None),
    (TorchEasyRec(), to_torcheasyrec),
    (DynamicEmb(), to_dynamicemb),
    (HugeCTR(), to_hugectr),
    (DistributedEmbeddings(), to_distributed_embeddings),
    (SparseCore(), to_sparsecore),
)

RUNTIMES: dict[str, Runtime] = {rules.name: rules for rules, _ in _ALL}
EXPORTS: dict[str, Export] = {rules.name: export for rules, export in _ALL if export is not None}
