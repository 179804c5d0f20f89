/** The bytes of a plan: by tier, rank and what takes them, against what there is. */

import { rankStack } from "../charts/ranks.js";
import { h } from "../dom.js";
import * as format from "../format.js";
import { section } from "../parts.js";
import { stepMemory } from "./plan_step_memory.js";
import { ranksTable } from "./plan_time.js";

/** Nearest memory first. */
const TIERS = [
  ["hbm", "Memory of the accelerators (hbm)"],
  ["ddr", "Memory of the hosts (ddr)"],
  ["scm", "Storage-class memory (scm)"],
  ["ssd", "Block storage (ssd)"],
];
const LINE_COLOURS = {
  weights: 0,
  optimizer_state: 8,
  row_optimizer_state: 6,
  row_keys: 7,
  slots: 7,
  slot_history: 9,
  gradients: 3,
  input_buffers: 1,
  output_buffers: 2,
  cache: 4,
  cache_index: 7,
  eviction_buffers: 2,
  write_buffers: 3,
  hot_rows: 5,
  growth: 6,
  distinct_rows: 8,
  remap: 9,
};
const FREE = -1;

/** What every rank holds in every tier that is used. */
export function memorySection(plan) {
  const used = TIERS.filter(([tier]) => plan.ranks.some((rank) => (rank.bytes[tier] ?? 0) > 0));
  if (used.length === 0) return null;
  return section(
    "Memory",
    h(
      "p",
      {},
      "Against what is left for tables after reservations; the end of the scale is the capacity of the largest rank.",
    ),
    used.map(([tier, name]) => [
      used.length > 1 && h("h3", {}, name),
      tierChart(plan, tier, name),
      h("p", { class: "note" }, reserved(plan.ranks, tier)),
      byTorchRec(plan.ranks, tier),
    ]),
    stepMemory(plan),
  );
}

function tierChart(plan, tier, name) {
  const held = (line) => (rank) => rank.ledger_bytes?.[tier]?.[line] ?? 0;
  const lines = Object.keys(LINE_COLOURS).filter((line) => plan.ranks.some((rank) => held(line)(rank) > 0));
  const capacity = (rank) => rank.capacity_bytes[tier] ?? 0;
  const parts =
    lines.length > 0
      ? lines.map((line) => ({ name: format.words(line), colour: LINE_COLOURS[line], of: held(line) }))
      : [{ name: "tables", colour: 0, of: (rank) => rank.bytes[tier] ?? 0 }];
  const free = { name: "free", colour: FREE, of: (rank) => Math.max(0, capacity(rank) - (rank.bytes[tier] ?? 0)) };
  const columns = [...parts, { name: "all", of: (rank) => rank.bytes[tier] ?? 0 }, { name: "capacity", of: capacity }];
  const title = `${name}: bytes of every rank`;
  return rankStack({
    title,
    caption: "One bar for each rank, up to its capacity.",
    ranks: plan.ranks,
    parts: [...parts, free],
    format: format.bytes,
    full: Math.max(...plan.ranks.map(capacity)) || null,
    interval: format.byteInterval,
    podSize: plan.pod_size,
    table: () => ranksTable(title, plan, columns, format.bytes),
  }).element;
}

/** What TorchRec's own planner would count on the fullest rank, if its estimator priced the plan. */
function byTorchRec(ranks, tier) {
  const counted = Math.max(...ranks.map((rank) => rank.torchrec_bytes?.[tier] ?? 0));
  return counted > 0 && h("p", { class: "note" }, `TorchRec's own planner counts ${format.bytes(counted)} at most.`);
}

/** What tables may not use, of the rank where that is most. */
function reserved(ranks, tier) {
  const amounts = ranks.map((rank) =>
    Object.entries(rank.reserved_bytes?.[tier] ?? {}).filter(([, value]) => value > 0),
  );
  const total = (lines) => lines.reduce((sum, [, value]) => sum + value, 0);
  const most = amounts.reduce((a, b) => (total(b) > total(a) ? b : a), []);
  if (most.length === 0) return "Nothing is reserved.";
  const parts = most.map(([line, value]) => `${format.words(line)} ${format.bytes(value)}`);
  return `Reserved on every rank, at most: ${parts.join(", ")}.`;
}
