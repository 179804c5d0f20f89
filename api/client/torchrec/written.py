"""A ``ShardingPlan`` as JSON, for a service or a command line that is to judge or improve it."""

from typing import Any

from torchrec.distributed.types import EmbeddingModuleShardingPlan, ShardingPlan


def plan_as_json(plan: ShardingPlan) -> dict[str, Any]:
    """Return a plan as ``shardplan evaluate``, ``improve`` and ``import`` take it, wherever it comes from.

    This is what TorchRec's own serialisation has, and what it leaves out of caches: load factor and reserved memory.

    Raises
    ------
    ValueError
        The plan has a module that is no embedding module.
    """
    written: dict[str, Any] = plan._serialize()  # noqa: SLF001 (public in no release)
    for path, module in plan.plan.items():
        if not isinstance(module, EmbeddingModuleShardingPlan):
            raise ValueError(f'module "{path}" of the plan is a {type(module).__name__}, no embedding module')
        for name, sharding in module.items():
            cache = sharding.cache_params
            stated = {} if cache is None else {key: getattr(cache, key) for key in ("load_factor", "reserved_memory")}
            if stated := {key: value for key, value in stated.items() if value is not None}:
                written["plan"][path][name]["cache_params"] = stated
    return written
