"""MLPerf Training's DLRM-DCNv2 submissions: measured steps, the machine of each and the plan that HugeCTR ran."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.prices.reality.cells import count, time
from benchmarks.prices.reality.mlperf.hugectr_planner import Holdings, held_as, planned
from benchmarks.prices.reality.mlperf.model import TABLES, Job
from benchmarks.prices.reality.row import LeftOutRow
from benchmarks.prices.reality.tables import Fields, Line, documents, lines_with
from cost_models.hardware.profiles_loader import load_profile
from cost_models.text.read_number import finite_number
from planner.domain.problem.cluster import MAX_RANKS

COLUMNS = frozenset({"row_id", "duplicate_of", "gpu_short", "nvlink_domain", "global_batch", "step_ms_train_median"})
#: The profile of each accelerator; B300 has the compute and the NVLink of B200.
PROFILES = {
    "A100": "dgx-a100-80g",
    "H100": "dgx-h100-80g",
    "H200": "dgx-h200-141g",
    "B200": "dgx-b200-180g",
    "B300": "dgx-b200-180g",
    "GB200": "gb200-nvl72",
}
#: Share of a GPU's memory that HugeCTR's planner fills: the fullest GPUs of printed plans hold 55 of 80 GB.
_FILLED = 0.75
_DEFAULT_RATIO = {"auto": 7.0, "hier_auto": 67.0}
_DEFAULT_THRESHOLD_GB = {"v3.0": 0.0}  # later rounds replicate small tables
_LATER_THRESHOLD_GB = 0.008
_MOST_SAMPLES = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the submitted configuration says of the plan."""

    sharding_plan: str  # auto or hier_auto
    mem_comm_bw_ratio: float
    dp_sharding_threshold_gb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A submission: where it ran and how long its step took."""

    line: Line
    gpu: str
    round: str
    job: Job
    settings: Settings
    printed: Holdings | None  # its plan, if its log has that
    step_seconds: float

    @property
    def platform(self) -> str:
        """Accelerator and cluster, such as ``H100 8x8``."""
        return f"{self.gpu} {self.job.num_hosts}x{self.job.ranks_per_host}"

    @property
    def is_odd(self) -> bool:
        """Whether the submission is known to be slower than its system: a later round of it took 0.65 of the time.

        The first round's run on 16 hosts is no faster than the one on 8.
        """
        return self.round == "v3.0" and self.job.num_hosts >= 16

    def plan(self) -> Holdings | None:
        """Return the plan: as printed, or made again from the settings; ``None`` if none has room."""
        if self.printed is not None:
            return self.printed
        is_by_node = self.settings.sharding_plan == "hier_auto" and self.job.num_hosts > 1
        hbm_bytes = load_profile(self.job.profile).numbers["hbm_bytes"].value
        per_holder = self.job.ranks_per_host if is_by_node else 1
        return planned(
            TABLES,
            num_holders=self.job.num_hosts if is_by_node else self.job.num_ranks,
            holder_bytes=_FILLED * hbm_bytes * per_holder,
            mem_comm_bw_ratio=self.settings.mem_comm_bw_ratio,
            replicated_below_bytes=self.settings.dp_sharding_threshold_gb * 1e9,
            is_by_node=is_by_node,
        )


def runs(folder: Path) -> Iterator[Run | LeftOutRow]:
    """Yield the submissions of the tables of a folder, and those that the product does not price."""
    printed = _printed_plans(folder)
    for line in lines_with(folder, COLUMNS):
        reason = _why_not(line.fields)
        if reason:
            yield line.left_out(reason)
            continue
        fields = line.fields
        hosts, gpus = (count(fields, name, most=MAX_RANKS) for name in ("nodes", "gpus"))
        job = Job(
            profile=PROFILES[fields["gpu_short"]],
            num_hosts=hosts,
            ranks_per_host=gpus // hosts,
            global_batch=count(fields, "global_batch", most=_MOST_SAMPLES),
            is_mixed_precision=fields.get("mixed_precision") != "false",
        )
        yield Run(
            line=line,
            gpu=fields["gpu_short"],
            round=fields.get("round", ""),
            job=job,
            settings=_settings(fields, hosts),
            printed=printed.get(fields["row_id"]),
            step_seconds=time(fields, "step_ms_train_median") / 1e3,
        )


def _why_not(fields: Fields) -> str:
    """Return why a row is left out; empty if it is not."""
    if fields["duplicate_of"]:
        return "the same runs as another row"
    gpu = fields["gpu_short"]
    if gpu not in PROFILES:
        return f"no profile of {gpu}"
    if fields["nvlink_domain"] == "0":
        return f"no profile of {gpu} on PCIe"
    try:
        time(fields, "step_ms_train_median")
        count(fields, "global_batch", most=_MOST_SAMPLES)
        hosts, gpus = (count(fields, name, most=MAX_RANKS) for name in ("nodes", "gpus"))
    except ValueError as error:
        return str(error)
    most = load_profile(PROFILES[gpu]).ranks_per_host
    if gpus % hosts or gpus // hosts > most:
        return f"{gpus} GPUs on {hosts} nodes are not the hosts of a profile, of {most} GPUs at most"
    return ""


def _settings(fields: Fields, hosts: int) -> Settings:
    """Return the submitted settings; those that are missing are what other submissions of the round have."""
    plan = fields.get("sharding_plan") or ("hier_auto" if hosts > 2 else "auto")
    ratio, threshold = fields.get("mem_comm_bw_ratio", ""), fields.get("dp_sharding_threshold_gb", "")
    known = _number(threshold)
    if known is None or not fields.get("sharding_plan"):
        known = _DEFAULT_THRESHOLD_GB.get(fields.get("round", ""), _LATER_THRESHOLD_GB)
    return Settings(
        sharding_plan=plan,
        mem_comm_bw_ratio=_number(ratio) or _DEFAULT_RATIO.get(plan, 7.0),
        dp_sharding_threshold_gb=known,
    )


def _number(text: str) -> float | None:
    """Return the number that a text begins with: ``0(default)`` is 0."""
    return finite_number(text.split("(")[0])


def _printed_plans(folder: Path) -> dict[str, Holdings]:
    """Return the plans that logs have, by the id of the row, from the documents of a folder that list plans.

    What is no such plan is passed over: the row has the plan that its settings make.
    """
    found: dict[str, Holdings] = {}
    for content in documents(folder):
        listed = content.get("plans")
        for one in listed if isinstance(listed, list) else []:
            try:
                matrix = one["shard_matrix"]
                matrix = json.loads(matrix) if isinstance(matrix, str) else matrix
                replicas = set(one["data_parallel"])
                holders = [[index for index in row if index not in replicas] for row in matrix]
                found[one["row_id"]] = held_as(holders, len(TABLES))
            except (KeyError, TypeError, ValueError, IndexError):
                continue
    return found
