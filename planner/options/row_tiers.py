"""Which memories the rows of a kernel may lie in."""

from cost_models.vocabulary import Kernel, Tier
from planner.domain.problem.cluster import Cluster
from planner.options.runtimes.base import Runtime


def row_tiers(kernel: Kernel, cluster: Cluster, runtime: Runtime) -> tuple[Tier, ...]:
    """Return where a kernel may keep its rows: the usual tier first, whether or not the cluster has any of it.

    Storage-class memory is the second one of kernels that read the host's memory, where an accelerator's host has it
    and the runtime can use it.
    """
    usual = kernel.tier(cluster.device_tier)
    may_be_scm = kernel.facts.reads_host_memory and runtime.supports_scm and cluster.device_tier is Tier.HBM
    return (usual, Tier.SCM) if may_be_scm and cluster.has_tier(Tier.SCM) else (usual,)
