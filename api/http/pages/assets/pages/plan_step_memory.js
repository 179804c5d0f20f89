/** The memory of the accelerator with the highest peak, phase by phase of a training step. */

import { phaseStack } from "../charts/phases.js";
import { h } from "../dom.js";
import * as format from "../format.js";
import { table } from "../parts.js";

/** In the order of every pipeline. */
const PHASES = [
  "forward_compute",
  "forward_comm",
  "output_concat",
  "stash",
  "dense_forward",
  "dense_backward",
  "restore",
  "gradient_split",
  "backward_comm",
  "backward_compute",
];
const LINE_COLOURS = {
  tables: 0,
  stashed_weights: 7,
  dense_parameters: 9,
  input_batches: 6,
  input_buffers: 1,
  collective_buffers: 8,
  lookup_outputs: 2,
  sent_rows: 3,
  received_rows: 4,
  pooled_rows: 5,
  activations: 2,
  gradients_of_pooled_rows: 4,
  gradient_copies: 5,
  sent_gradients: 3,
  gradients_of_outputs: 2,
};
const FREE = -1;

/** What the fullest accelerator holds in each phase; nothing where requests are served, and of earlier plans. */
export function stepMemory(plan) {
  const known = plan.ranks.filter((rank) => rank.step_memory);
  if (known.length === 0) return null;
  const rank = known.reduce((a, b) => (b.step_memory.peak_bytes > a.step_memory.peak_bytes ? b : a));
  const memory = rank.step_memory;
  const bars = PHASES.filter((name) => name in memory.phase_bytes).map((name) => ({
    name: format.words(name),
    bytes: memory.phase_bytes[name],
    lines: { ...memory.persistent_bytes, ...memory.buffer_bytes[name] },
  }));
  const parts = Object.keys(LINE_COLOURS)
    .filter((line) => bars.some((bar) => (bar.lines[line] ?? 0) > 0))
    .map((line) => ({
      name: format.words(line),
      colour: LINE_COLOURS[line],
      of: (bar) => bar.lines[line] ?? 0,
    }));
  const free = { name: "free", colour: FREE, of: (bar) => Math.max(0, memory.device_bytes - bar.bytes) };
  const title = `Memory of rank ${rank.rank} over a step`;
  const share = format.wholeShare(memory.peak_bytes / memory.device_bytes);
  return [
    h("h3", {}, "Over a step"),
    h(
      "p",
      {},
      `Rank ${rank.rank} has the highest peak: ${format.bytes(memory.peak_bytes)}, ${share} of its accelerator's memory, `,
      `in the phase ${format.words(memory.peak_phase)}. What the margin keeps free is free here.`,
    ),
    phaseStack({
      title,
      caption: "One bar for each phase of a step, up to the whole memory of the accelerator.",
      phases: bars,
      parts: [...parts, free],
      format: format.bytes,
      full: memory.device_bytes,
      interval: format.byteInterval,
      table: () =>
        table(
          title,
          [
            { title: "Phase", head: true, cell: (bar) => bar.name },
            ...parts.map((part) => ({
              title: part.name,
              number: true,
              cell: (bar) => format.bytes(part.of(bar)),
            })),
            { title: "all", number: true, cell: (bar) => format.bytes(bar.bytes) },
          ],
          bars,
        ),
    }),
    plan.stash && stashed(plan.stash, plan.tables),
  ];
}

/** What leaves the accelerators while the dense part runs. */
function stashed(stash, tables) {
  if (stash.num_tables === 0) return h("p", {}, "Nothing is stashed: activations fit next to all tables.");
  const names = tables.filter((entry) => entry.stash_weights).map((entry) => entry.name);
  return [
    h("h3", {}, "Stashed weights"),
    h(
      "p",
      {},
      `Tables that leave the accelerators while the dense part runs: ${stash.num_tables}, of `,
      `${format.bytes(stash.all_ranks_bytes)} on all ranks, at most ${format.bytes(stash.stashed_bytes)}, on rank ${stash.busiest_rank}, `,
      `which copies ${format.seconds(stash.to_host_seconds)} to the host and ${format.seconds(stash.to_device_seconds)} back. `,
      `Dense compute waits ${format.seconds(stash.forward_wait_seconds + stash.backward_wait_seconds)} for copies.`,
    ),
    h("details", {}, h("summary", {}, "Stashed tables"), h("p", {}, names.join(", "))),
  ];
}
