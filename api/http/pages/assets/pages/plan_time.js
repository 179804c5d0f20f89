/** The seconds of a plan: of every phase, and of every rank. */

import { rankStack } from "../charts/ranks.js";
import { h } from "../dom.js";
import * as format from "../format.js";
import { evidence, labelled, section, select, table } from "../parts.js";

/** The colour of each phase in charts. */
const PHASE_COLOURS = {
  input_comm: 8,
  forward_compute: 0,
  forward_comm: 1,
  backward_comm: 2,
  backward_compute: 3,
  prefetch: 4,
  checkpoint: 7,
  replica_sync: 5,
  kv_recompute: 6,
};

/** Where the time of a step, or of a request, goes. */
export function timeSection(plan) {
  const phases = plan.phases.filter((phase) => phase.seconds > 0);
  if (phases.length === 0) return section("Time", h("p", {}, "No phase of this plan takes any time."));
  const serving = plan.serving !== null && plan.serving !== undefined;
  const waits = serving
    ? "Cards do not wait for each other within a request."
    : "A phase lasts as long as its slowest rank: all others wait for it.";
  return section(
    "Time",
    h("p", {}, waits),
    phaseTable(phases),
    startsTable(plan.starts ?? []),
    ranksChart(
      plan,
      phases.filter((phase) => phase.counted ?? true),
    ),
  );
}

function phaseTable(phases) {
  return table(
    "Phases",
    [
      { title: "Phase", head: true, cell: (phase) => format.words(phase.name) },
      { title: "Slowest rank", number: true, cell: (phase) => phase.slowest_rank },
      { title: "Its time", number: true, cell: (phase) => format.seconds(phase.seconds) },
      { title: "Mean of all ranks", number: true, cell: (phase) => format.seconds(phase.mean_seconds) },
      {
        title: "Hidden",
        number: true,
        cell: (phase) => ((phase.counted ?? true) ? format.seconds(phase.hidden_seconds ?? 0) : "not counted"),
      },
      { title: "Evidence", cell: (phase) => evidence(phase.evidence) },
    ],
    phases,
  );
}

/** What each sharding type starts once per step, the longest first; part of the seconds of every rank. */
function startsTable(starts) {
  if (starts.length === 0) return null;
  const total = starts.reduce((sum, start) => sum + start.seconds, 0);
  const longestFirst = [...starts].sort((a, b) => b.seconds - a.seconds);
  return [
    h("h3", {}, "Starts"),
    h(
      "p",
      {},
      `Collectives and kernels begin once per step for each sharding type: ${format.seconds(total)} on every rank.`,
    ),
    table(
      "Starts",
      [
        { title: "Sharding type", head: true, cell: (start) => format.words(start.sharding_type) },
        { title: "Module", cell: (start) => start.module || "none given" },
        { title: "Seconds", number: true, cell: (start) => format.seconds(start.seconds) },
      ],
      longestFirst,
    ),
  ];
}

function ranksChart(plan, phases) {
  const parts = phases.map((phase) => ({
    name: format.words(phase.name),
    colour: PHASE_COLOURS[phase.name] ?? 9,
    of: (rank) => rank.seconds[phase.name] ?? 0,
  }));
  const unit = format.unitOfWork(plan.objective.name);
  const total = (rank) => parts.reduce((sum, part) => sum + part.of(rank), 0); // for the order alone
  const chart = rankStack({
    title: "Seconds of every rank by phase",
    caption: `One bar for each rank; the parts are the phases that the objective counts, in the order of a ${unit}.`,
    ranks: plan.ranks,
    parts,
    format: format.seconds,
    podSize: plan.pod_size,
    table: () => ranksTable("Seconds of every rank by phase", plan, parts, format.seconds),
  });
  const orders = { rank: (a, b) => a.rank - b.rank, time: (a, b) => total(b) - total(a) };
  const order = select(
    [
      ["rank", "by rank"],
      ["time", "slowest first"],
    ],
    (name) => chart.reorder([...plan.ranks].sort(orders[name])),
  );
  return [
    h("h3", {}, "Rank by rank"),
    plan.ranks.length > 1 && h("div", { class: "controls" }, labelled("Order", order)),
    chart.element,
  ];
}

/** Amounts of every rank as a table. */
export function ranksTable(caption, plan, parts, written) {
  const pod = { title: "Pod", number: true, cell: (rank) => Math.floor(rank.rank / plan.pod_size) };
  return table(
    caption,
    [
      { title: "Rank", head: true, cell: (rank) => rank.rank },
      { title: "Host", number: true, cell: (rank) => rank.host },
      ...(plan.pod_size ? [pod] : []),
      ...parts.map((part) => ({ title: part.name, number: true, cell: (rank) => written(part.of(rank)) })),
    ],
    plan.ranks,
  );
}
