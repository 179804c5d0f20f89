"""Every runtime that plans can be made for."""

from planner.runtimes.base import Runtime
from planner.runtimes.distributed_embeddings import DistributedEmbeddings
from planner.runtimes.generic import Generic
from planner.runtimes.hugectr import HugeCTR
from planner.runtimes.sparsecore import SparseCore
from planner.runtimes.torcheasyrec import TorchEasyRec
from planner.runtimes.torchrec import TorchRec

RUNTIMES: dict[str, Runtime] = {
    runtime.name: runtime
    for runtime in (TorchRec(), Generic(), TorchEasyRec(), HugeCTR(), DistributedEmbeddings(), SparseCore())
}
