"""The steps of the tour: what each shows, in two lines, and the command that it runs."""

from dataclasses import dataclass

SERVER = "{server}"  # stands for the address of the tour's own service
TABLES = "tables.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command, and why it is run."""

    title: str
    words: str
    command: tuple[str, ...]  # without ``shardplan``

    @property
    def needs_service(self) -> bool:
        """Whether the command asks a service."""
        return SERVER in self.command


STEPS = (
    Step(
        title="From tables to a spec",
        words="tables.csv has five tables of a small ranker; `init` adds hardware and a batch."
        " A Python model, a plan of TorchRec, or a planner's log does as well.",
        command=(
            *("init", TABLES, "--yes", "--name", "ranker", "--batch-size-per-rank", "2048"),
            *("--profile", "dgx-h100-80g", "--ranks-per-host", "4", "-o", "ranker.spec.json"),
        ),
    ),
    Step(
        title="From a spec to a plan",
        words="`plan` prices every legal way to shard each table, and places all tables together."
        " Bound and gap say how far the best possible plan can be.",
        command=("plan", "ranker.spec.json", "--time-limit", "3", "-o", "ranker.plan.json"),
    ),
    Step(
        title="Why this plan?",
        words="`explain` names the phases and ranks that set the step time, what more memory or"
        " bandwidth would save, and the next-best cut of each table.",
        command=("explain", "ranker.spec.json", "ranker.plan.json", "--tables", "2"),
    ),
    Step(
        title="What if there were two hosts?",
        words="An option or `--set` changes any field: the same model on two hosts."
        " The other plan gets a file of its own.",
        command=(
            *("plan", "ranker.spec.json", "--time-limit", "3", "--num-hosts", "2"),
            *("-o", "two_hosts.plan.json"),
        ),
    ),
    Step(
        title="What changed?",
        words="`compare` lists the phases that are slower or faster, and the tables that are cut"
        " in another way. It names differences within the error of the prices.",
        command=("compare", "ranker.plan.json", "two_hosts.plan.json"),
    ),
    Step(
        title="Into the training job",
        words="`export` writes the plan as TorchRec takes it; DistributedModelParallel runs it."
        " `shardplan export --help` lists the other runtimes.",
        command=("export", "ranker.plan.json", "-o", "ranker.torchrec.json"),
    ),
    Step(
        title="The same plan from a service",
        words="A service keeps plans for all jobs of a team. One starts now, on a free port, for"
        " this tour alone. An equal spec gets an equal plan.",
        command=("plan", "ranker.spec.json", "--time-limit", "3", "--server", SERVER, "-o", "served.plan.json"),
    ),
    Step(
        title="Point a channel at a plan",
        words="Launchers read a channel and not a file. `promote` points it at a plan, `rollback`"
        " at the one before; the service records who and when.",
        command=("promote", "ads/ranker/prod", "served.plan.json", "--yes", "--server", SERVER),
    ),
    Step(
        title="What a launcher runs",
        words="`fetch` brings a file up to date with a channel. The second time nothing is sent,"
        " so that each job can ask at its start.",
        command=("fetch", "ads/ranker/prod", "-o", "launcher.plan.json", "--server", SERVER),
    ),
)
