"""Tables that TorchRec may put into one operator, which has bits for so many features and samples."""

from collections import defaultdict
from collections.abc import Iterator

from cost_models.text.number_text import counted
from cost_models.vocabulary import Tier
from planner.domain.problem.problem import Problem
from planner.errors import Issue
from planner.options.runtimes.registry import RUNTIMES
from planner.options.runtimes.torchrec.operator_limits import most_samples


def crowded_operators(problem: Problem) -> Iterator[Issue]:
    """Warn of groups of tables that no operator of a rank could hold together; a plan may spread them over ranks."""
    batch = problem.batch_size_per_rank
    if batch is None or problem.cluster.device_tier is not Tier.HBM or not RUNTIMES[problem.runtime].shares_operators:
        return
    groups: dict[tuple[object, ...], int] = defaultdict(int)
    for table in problem.tables:
        alike = (table.module_path, table.pooling, table.is_weighted, table.data_type.name, table.optimizer.name)
        groups[alike] += len(table.features)
    num_features, samples = max(groups.values()), problem.world_size * batch
    if samples > most_samples(num_features):
        fewest = next(bits for bits in range(1, 64) if samples > most_samples(2**bits - 1))
        yield Issue(
            code="operator-too-large",
            pointer="/model/batch_size_per_rank",
            message=f"TorchRec may put {counted(num_features, 'feature')} of one module into one operator of a rank,"
            f" and FBGEMM then takes at most {most_samples(num_features)} samples of all ranks in a step: there are"
            f" {samples}",
            hint=f"keep a rank to {2 ** (fewest - 1) - 1} features of tables that agree in module, pooling, weights"
            " of ids, data type and optimizer: use several modules, or smaller batches; plans are not checked for this",
            severity="warning",
        )
