"""The roofline's communication: bytes of collectives (:mod:`cost_models.collectives.collective_bytes`) over what links
sustain.
"""

from collections.abc import Callable, Iterable

from cost_models.analytic.tally import Tally
from cost_models.arrays import Floats
from cost_models.collectives.collective_bytes import Exchange
from cost_models.collectives.collectives import CommTime, Network
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import ShardWork


def add_exchange(tally: Tally, work: ShardWork, hardware: Hardware, exchanges: Iterable[Exchange]) -> None:
    """Add the seconds of collectives of ``work``."""
    network = Network(
        hardware=hardware,
        num_ranks=work.num_ranks,
        ranks_per_host=work.ranks_per_host,
        pod_size=work.pod_size,
        job=work.job,
    )
    for exchange in exchanges:
        time = exchange_time(network, exchange, exchange.shard_bytes, exchange.message_bytes)
        tally.add(exchange.phase, time.seconds, time.evidence)


def exchange_time(network: Network, exchange: Exchange, held_bytes: Floats, message_bytes: Floats) -> CommTime:
    """Time that bytes (of shards, or of whole ranks) take in a collective; of the shape of ``held_bytes``.

    ``message_bytes`` are those of the whole message, one number of shape (1,), or of an all-reduce one for each.
    """
    if exchange.operation == "all_reduce":
        reduce = network.all_reduce if exchange.group == "all" else network.all_reduce_in_job
        return reduce(held_bytes, message_bytes)
    methods: dict[tuple[str, str], Callable[[Floats, float], CommTime]] = {
        ("all_to_all", "all"): network.all_to_all,
        ("all_to_all", "across"): network.all_to_all_across_groups,
        ("reduce_scatter", "all"): network.reduce_scatter,
        ("reduce_scatter", "inside"): network.reduce_scatter_inside_group,
        ("all_gather", "all"): network.all_gather,
        ("all_gather", "inside"): network.all_gather_inside_group,
    }
    return methods[exchange.operation, exchange.group](held_bytes, float(message_bytes[0]))
