"""``ShardingStrategy.FULLY_SHARDED`` on CPUs: streams that do nothing, and averages in place of what gloo lacks.

FBGEMM's operators have their weights in another tensor on CPUs: the one that TorchRec frees is made to share its
memory. Call :func:`run_on_hosts` in a process of its own, before the model is sharded.
"""

import contextlib

import torch
import torch.distributed as dist
from torchrec.distributed import batched_embedding_kernel as kernels

#: What each operator held, in order: (moment, bytes of its weights, bytes of its part of their average).
HELD: list[tuple[str, int, int]] = []


class _NoStream:
    """A stream, or an event, of a device that runs one thing after the other."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def wait_stream(self, *_: object) -> None:
        pass

    wait_event = record = wait_stream


class _Done:
    """A collective that has ended."""

    def wait(self) -> None:
        pass


def run_on_hosts() -> None:
    """Let TorchRec run that strategy without GPUs, and note what its operators hold."""
    torch.cuda.Stream = torch.cuda.Event = _NoStream
    torch.cuda.current_stream = lambda *_: _NoStream()
    torch.cuda.stream = lambda _: contextlib.nullcontext()
    dist.reduce_scatter_tensor = _averages(dist.reduce_scatter_tensor)
    _share_memory(kernels.BatchedFusedEmbeddingBag)
    _note_bytes(kernels.ShardedBatchedFusedEmbeddingBag)


def _averages(reduce_scatter: object) -> object:
    def of_gloo(output: torch.Tensor, input: torch.Tensor, op: object = dist.ReduceOp.SUM, **where: object) -> object:
        if op != dist.ReduceOp.AVG:
            return reduce_scatter(output, input, op=op, **where)
        group, whole = where["group"], input.clone()
        dist.all_reduce(whole, group=group)
        number = dist.get_world_size(group)
        output.copy_((whole / number).chunk(number)[dist.get_rank(group)])
        return _Done()

    return of_gloo


def _share_memory(operator: type) -> None:
    begin = operator.__init__

    def shared(self: torch.nn.Module, *arguments: object, **options: object) -> None:
        begin(self, *arguments, **options)
        self._emb_module.weights_dev = self._emb_module.weights_host.data

    operator.__init__ = shared


def _note_bytes(operator: type) -> None:
    look_up, gather = operator.forward, operator._all_gather_table_weights  # noqa: SLF001

    def forward(self: torch.nn.Module, features: object) -> object:
        found = look_up(self, features)
        _note(self, "lookup")
        return found

    def gathered(self: torch.nn.Module) -> None:
        is_away = self.weights_sharded
        if is_away:
            _note(self, "dense")
        gather(self)
        if is_away:
            _note(self, "update")

    operator.forward, operator._all_gather_table_weights = forward, gathered  # noqa: SLF001


def _note(operator: torch.nn.Module, moment: str) -> None:
    tensors = operator._unsharded_param, operator._shard_buf  # noqa: SLF001
    HELD.append((moment, *(tensor.untyped_storage().nbytes() for tensor in tensors)))
