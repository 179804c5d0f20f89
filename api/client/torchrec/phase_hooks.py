"""Hooks that see the phases of one sharded embedding module begin and end.

A phase is timed alone, as a cost model prices it. So in a step that is timed

- all ranks meet before each exchange (an all-reduce of one number), and the exchange is timed from there: how long a
  rank waits for the slowest one is no part of it;
- every exchange is waited for at once, where TorchRec would go on until somebody needs the result. Nothing else runs in
  its time then, in the backward pass neither: autograd runs what was made later first, and nothing was made in between.

The second costs the step what it would have overlapped. Numbers do not change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torchrec.distributed.embeddingbag import ShardedEmbeddingBagCollection
from torchrec.distributed.types import Awaitable, NoWait

from ..errors import NotTimed
from ..job_times import BACKWARD_COMM, BACKWARD_COMPUTE, FORWARD_COMM, FORWARD_COMPUTE, INPUT_COMM
from .clocks import Clock

_REPLICATED = "data_parallel"
_ENDS_OF_GRAPH = "AccumulateGrad"  # autograd's node of a weight: the gradient of fused tables never gets there
#: What TorchRec 1.8 keeps its parts under, by sharding type; none of it is public.
_INPUT_DISTS, _LOOKUPS, _OUTPUT_DISTS, _TYPES = "_input_dists", "_lookups", "_output_dists", "_sharding_types"
_ENV, _DEVICE = "_env", "_device"


@dataclass(slots=True)
class Window:
    """A phase of one part of a module in one step."""

    phase: str
    begin: Any = None
    end: Any = None


@dataclass(slots=True)
class StepRecord:
    """What hooks saw of one step."""

    windows: list[Window] = field(default_factory=list)
    running: list[Window] = field(default_factory=list)  # those of the forward pass that have begun and not ended
    handles: list[Any] = field(default_factory=list)  # of hooks on tensors that outlive the step
    num_lookups: int = 0
    is_without_gradient: bool = False

    def window(self, phase: str) -> Window:
        """Add a window."""
        added = Window(phase)
        self.windows.append(added)
        return added

    def incomplete_reason(self, num_lookups: int) -> str | None:
        """Return why the step is no step of training, of one forward and one backward pass."""
        if self.num_lookups != num_lookups:
            passes = self.num_lookups / num_lookups
            return f"a step had {passes:g} forward passes, not one; let each pass be a step of its own"
        if self.is_without_gradient or any(one.begin is None or one.end is None for one in self.windows):
            return "a step had no backward pass, or not all of it"
        return None

    def seconds(self, clock: Clock) -> dict[str, float]:
        """Return the seconds of each phase, over all parts."""
        found: dict[str, float] = {}
        for one in self.windows:
            found[one.phase] = found.get(one.phase, 0.0) + clock.seconds(one.begin, one.end)
        return found


class ModuleHooks:
    """Hooks of one module, from the first timed step to the last.

    Parameters
    ----------
    clock
        Of the module's device.
    step
        Returns the record of the step that runs, if it is timed.
    """

    def __init__(
        self,
        module: ShardedEmbeddingBagCollection,
        device: torch.device,
        clock: Clock,
        step: Callable[[], StepRecord | None],
    ) -> None:
        self._clock, self._step = clock, step
        self._group = group_of(module)
        self._token = torch.zeros(1, device=device)
        self._input_handles: list[Any] = []
        self._handles: list[Any] = []
        #: Whether a training pipeline sends the ids of all modules in one exchange of its own.
        self.is_pipelined = False
        parts = zip(_inner(module, _TYPES), _inner(module, _LOOKUPS), strict=True)
        begin_input, begin_output = (partial(self._begin_exchange, phase) for phase in (INPUT_COMM, FORWARD_COMM))
        for index, (sharding_type, lookup) in enumerate(parts):
            self._put(self._handles, lookup, self._begin_lookup, self._end)
            if sharding_type != _REPLICATED:
                self._put(self._handles, _inner(module, _OUTPUT_DISTS)[index], begin_output, self._end_output)
                self._put(self._input_handles, _inner(module, _INPUT_DISTS)[index], begin_input, self._end_input)

    def close(self) -> None:
        for handle in [*self._handles, *self._input_handles]:
            handle.remove()

    @staticmethod
    def _put(handles: list[Any], part: nn.Module, before: Callable[..., None], after: Callable[..., None]) -> None:
        handles.append(part.register_forward_pre_hook(before))
        handles.append(part.register_forward_hook(after))

    def _meet(self) -> None:
        """Have all ranks come to this point; on a GPU its stream waits, and its host does not."""
        with torch.no_grad():
            dist.all_reduce(self._token, group=self._group)

    def _begin(self, phase: str) -> None:
        record = self._step()
        if record is not None:
            window = record.window(phase)
            record.running.append(window)
            window.begin = self._clock.now()

    def _end(self, *_: Any) -> None:
        record = self._step()
        if record is not None and record.running:
            record.running.pop().end = self._clock.now()

    def _begin_lookup(self, *_: Any) -> None:
        record = self._step()
        if record is not None:
            record.num_lookups += 1
        self._begin(FORWARD_COMPUTE)

    def _begin_exchange(self, phase: str, *_: Any) -> None:
        if self._step() is not None:
            self._meet()
        self._begin(phase)

    def _end_input(self, _part: nn.Module, _given: Any, sent: Any) -> None:
        record = self._step()
        if record is None:
            return
        if not isinstance(sent, Awaitable):  # a pipeline collects what its modules would send
            self.is_pipelined = True
            record.windows.remove(record.running.pop())
            for handle in self._input_handles:
                handle.remove()
            return
        _waited(_waited(sent))
        self._end()

    def _end_output(self, _part: nn.Module, given: tuple[Any, ...], sent: Awaitable[torch.Tensor]) -> None:
        record = self._step()
        if record is None:
            return
        pooled = _waited(sent)
        self._end()
        if pooled.requires_grad:
            self._see_gradients(record, given[0], pooled)
        else:
            record.is_without_gradient = True

    def _see_gradients(self, record: StepRecord, looked_up: torch.Tensor, pooled: torch.Tensor) -> None:
        """Time the way of the gradient from what was exchanged to what was looked up, and through the lookup."""
        sent = record.window(BACKWARD_COMM)

        def begin(_: Any) -> None:
            self._meet()
            sent.begin = self._clock.now()

        def arrive(_: Any) -> None:
            sent.end = self._clock.now()

        pooled.grad_fn.register_prehook(begin)
        top = looked_up.grad_fn
        if top is None:  # a tensor that stands, in all steps, for the lookups that this rank does not have
            record.handles.append(looked_up.register_hook(arrive))
            return
        updated = record.window(BACKWARD_COMPUTE)

        def begin_update(_: Any) -> None:
            arrive(None)
            updated.begin = sent.end

        def end_update(*_: Any) -> None:
            updated.end = self._clock.now()

        top.register_prehook(begin_update)
        for node in _nodes_under(top):
            node.register_hook(end_update)


def group_of(module: ShardedEmbeddingBagCollection) -> dist.ProcessGroup:
    env = _inner(module, _ENV)
    return getattr(env, "sharding_pg", None) or env.process_group


def device_of(module: ShardedEmbeddingBagCollection) -> torch.device:
    """Return the device that a module's tables lie on, or that their caches do."""
    return torch.device(_inner(module, _DEVICE))


def num_lookups(module: ShardedEmbeddingBagCollection) -> int:
    """Return how many lookups a forward pass of a module makes: one for each sharding type."""
    return len(_inner(module, _LOOKUPS))


def _waited(awaitable: Awaitable[Any]) -> Any:
    """Wait now, and have later waits return the same result."""
    result = awaitable.wait()
    if not isinstance(awaitable, NoWait):
        awaitable.wait = lambda: result
    return result


def _nodes_under(top: Any) -> Iterator[Any]:
    """Yield a node of autograd's graph and all that its gradient goes to, without the weights at the ends."""
    seen, left = {top}, [top]
    while left:
        node = left.pop()
        yield node
        for below, _ in node.next_functions:
            if below is not None and below not in seen and below.name().rpartition("::")[2] != _ENDS_OF_GRAPH:
                seen.add(below)
                left.append(below)


def _inner(module: ShardedEmbeddingBagCollection, name: str) -> Any:
    found = getattr(module, name, None)
    if found is None:
        raise NotTimed([f"{type(module).__name__} of this TorchRec has no {name}; phases are timed in TorchRec 1.8"])
    return found
