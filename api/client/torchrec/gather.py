"""One message of each rank, on every rank."""

from typing import Any, TypeVar

import torch.distributed as dist

Message = TypeVar("Message")


def gathered(mine: Message, group: dist.ProcessGroup) -> list[Message]:
    """Return the messages of all ranks of a group, in their order; every rank calls it."""
    found: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, mine, group=group)
    return found
