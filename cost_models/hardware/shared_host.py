"""Several ranks on a host without accelerators: each has its share of the host."""

from dataclasses import replace

from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.vocabulary import Evidence

#: What each rank has of its own, however many there are.
_NOT_SHARED = ("_block_bytes", "_seconds", "_efficiency")
_BETWEEN_RANKS = "intra_host_bytes_per_second"


def shared_host(hardware: Hardware, ranks_per_host: int) -> Hardware:
    """Return the hardware of each of so many ranks that share the host of a profile.

    A profile's numbers are those of one of its ranks, so that capacities and rates are divided. Ranks of a host
    exchange through its memory, where a message is written and read once: half of a rank's share of its rate, unless
    the profile has a number.
    """
    parts = ranks_per_host / hardware.ranks_per_host
    numbers = {
        name: number
        if name.endswith(_NOT_SHARED)
        else replace(number, value=number.value / parts, note=f"1/{parts:g} of the host's; {number.note}".rstrip("; "))
        for name, number in hardware.numbers.items()
    }
    rate = numbers.get("ddr_bytes_per_second")
    if rate is not None and _BETWEEN_RANKS not in numbers:
        numbers[_BETWEEN_RANKS] = Quantity(
            value=rate.value / 2,
            unit=rate.unit,
            evidence=Evidence.ESTIMATED,
            source="Half of a rank's share of host memory, which a message is written to and read from",
        )
    return replace(hardware, ranks_per_host=ranks_per_host, numbers=numbers)
