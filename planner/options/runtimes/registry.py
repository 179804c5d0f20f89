"""Every runtime that plans can be made for."""

from planner.options.runtimes.base import Runtime
from planner.options.runtimes.distributed_embeddings.rules import DistributedEmbeddings
from planner.options.runtimes.generic import Generic
from planner.options.runtimes.hugectr.rules import HugeCTR
from planner.options.runtimes.sparsecore.rules import SparseCore
from planner.options.runtimes.torcheasyrec.rules import TorchEasyRec
from planner.options.runtimes.torchrec.rules import TorchRec

RUNTIMES: dict[str, Runtime] = {
    runtime.name: runtime
    for runtime in (TorchRec(), Generic(), TorchEasyRec(), HugeCTR(), DistributedEmbeddings(), SparseCore())
}
