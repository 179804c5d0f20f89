/** Parts that only some plans have: a whole step, a prediction, requests, groups, deduplicated ids, tiers, what moves, checkpoints. */

import { h } from "../dom.js";
import * as format from "../format.js";
import { evidence, facts, section, table } from "../parts.js";
import { kvCacheSection } from "./plan_kv_cache.js";
import { replicaGroupsSection } from "./plan_groups.js";
import { indexDedupSection } from "./plan_index_dedup.js";

/** The sections that a plan has. */
export function extraSections(plan) {
  const unit = format.unitOfWork(plan.objective.name);
  return [
    plan.whole_step && wholeStepSection(plan.whole_step),
    plan.prediction && predictionSection(plan.prediction, plan.surrogate),
    plan.serving && servingSection(plan.serving),
    plan.kv_cache && kvCacheSection(plan.kv_cache),
    plan.replica_groups && replicaGroupsSection(plan),
    plan.index_dedup && indexDedupSection(plan.index_dedup, plan.use_index_dedup === true),
    plan.tiers?.length > 0 && tiersSection(plan.tiers, unit),
    plan.movement && movementSection(plan.movement, unit),
    plan.checkpoint && checkpointSection(plan.checkpoint),
  ];
}

function wholeStepSection(step) {
  const { dense_all_reduce_seconds: allReduce, hidden_all_reduce_seconds: hidden } = step;
  return section(
    "Whole step",
    facts([
      ["Takes", [format.seconds(step.seconds), " ", evidence(step.evidence)]],
      ["Samples per second", format.count(Math.round(step.samples_per_second))],
      [
        "Embeddings",
        `${format.seconds(step.sparse_seconds)}, and ${format.seconds(step.hidden_sparse_seconds)} under dense compute`,
      ],
      ["Dense compute forward", format.seconds(step.dense_forward_seconds)],
      ["Dense compute backward", format.seconds(step.dense_backward_seconds)],
      allReduce > 0 && [
        "All-reduce of dense gradients",
        `${format.seconds(allReduce)}, of which ${format.seconds(hidden)} under dense compute`,
      ],
      step.overhead_seconds > 0 && ["Overhead", format.seconds(step.overhead_seconds)],
    ]),
  );
}

function predictionSection(prediction, surrogate) {
  const { shares } = prediction;
  const analytic = prediction.analytic_phases ?? [];
  const hidden = prediction.num_fallbacks - prediction.fallbacks.length;
  return section(
    "How well the seconds are known",
    facts([
      [
        "Between",
        [
          `${format.seconds(prediction.lower_seconds)} and ${format.seconds(prediction.upper_seconds)}, `,
          "every rank and phase at its own limit at once",
        ],
      ],
      ["Each limit holds with", `a probability of ${format.digits(prediction.coverage)}`],
      shares.learned > 0 && ["Learned", format.wholeShare(shares.learned)],
      ["From measured rates", format.wholeShare(shares.measured)],
      ["From other numbers", format.wholeShare(shares.analytic)],
      surrogate && [
        "Found",
        [
          `in search ${surrogate.round} of at most ${surrogate.num_rounds}, `,
          `with an additive model under which it takes ${format.seconds(surrogate.seconds)}`,
        ],
      ],
    ]),
    prediction.fallbacks.length > 0 && [
      h("h3", {}, "Outside the measured range"),
      h("p", {}, "The analytic model prices these."),
      table(
        "Outside the measured range",
        [
          { title: "Table", head: true, wide: true, cell: (fallback) => fallback.table },
          { title: "Shards", number: true, cell: (fallback) => format.count(fallback.num_shards) },
          { title: "Reason", wide: true, cell: (fallback) => fallback.reason },
        ],
        prediction.fallbacks,
      ),
      hidden > 0 && h("p", { class: "note" }, `and ${format.count(hidden)} more`),
    ],
    analytic.length > 0 && [
      h("h3", {}, "Collectives that the analytic model prices"),
      h(
        "ul",
        {},
        analytic.map((analyticPhase) => h("li", {}, `${format.words(analyticPhase.phase)}: ${analyticPhase.reason}`)),
      ),
    ],
  );
}

function servingSection(serving) {
  const rate = (value) => `${format.digits(value)} per second`;
  return section(
    "Requests",
    facts([
      [
        "One request",
        [
          `${format.counted(serving.samples_per_request, "sample")}, `,
          `${format.counted(serving.num_messages, "message")} between the host and its cards`,
        ],
      ],
      ["Busiest rank", `rank ${serving.busiest_rank}, ${format.seconds(serving.busy_seconds)} with each`],
      serving.requests_per_second !== null && [
        "As asked",
        `${rate(serving.requests_per_second)} keep it busy for ${format.wholeShare(serving.utilization)} of its time`,
      ],
      serving.p99_seconds && [
        "At random",
        `half within ${format.seconds(serving.p50_seconds)}, 99 of 100 within ${format.seconds(serving.p99_seconds)}` +
          (serving.p99_limit_seconds ? `; ${format.seconds(serving.p99_limit_seconds)} are asked` : ""),
      ],
      serving.sustained_requests_per_second !== null && [
        "At most",
        `${rate(serving.sustained_requests_per_second)}, at a limit of ${format.wholeShare(serving.utilization_limit)}`,
      ],
    ]),
  );
}

function tiersSection(tiers, unit) {
  return section(
    "Traffic of other memories",
    h("p", {}, `What one ${unit} moves, on the rank where the tier is busiest.`),
    table(
      `Traffic of one ${unit}`,
      [
        { title: "Tier", head: true, cell: (tier) => tier.name },
        { title: "Busiest rank", number: true, cell: (tier) => tier.busiest_rank },
        { title: "Read", number: true, cell: (tier) => format.bytes(tier.read_bytes) },
        { title: "Written", number: true, cell: (tier) => format.bytes(tier.written_bytes) },
        { title: "Busy", number: true, cell: (tier) => format.seconds(tier.busy_seconds) },
        { title: `Of a ${unit}`, number: true, cell: (tier) => format.wholeShare(tier.utilization) },
      ],
      tiers,
    ),
  );
}

function movementSection(movement, unit) {
  const rank = (entry) => `${format.bytes(entry.bytes)}, rank ${entry.rank}`;
  return section(
    "What moves from the plan before",
    movement.previous_issue && h("p", {}, movement.previous_issue),
    facts([
      ["Moves", format.bytes(movement.moved_bytes)],
      ["Stays", format.bytes(movement.kept_bytes)],
      ["New", format.bytes(movement.new_bytes)],
      ["Most sent", rank(movement.most_sent)],
      ["Most received", rank(movement.most_received)],
      movement.seconds !== null && [
        "Takes",
        [`${format.seconds(movement.seconds)} `, evidence(movement.link_evidence)],
      ],
      movement.previous_objective_seconds !== null && [
        "The plan before",
        format.seconds(movement.previous_objective_seconds),
      ],
      movement.saved_seconds_per_step !== null && [
        "Saves",
        `${format.seconds(movement.saved_seconds_per_step)} a ${unit}`,
      ],
      movement.break_even_steps !== null && ["Pays after", format.counted(movement.break_even_steps, unit)],
    ]),
  );
}

function timesLess(reduction) {
  return `1/${format.digits(reduction)} of full checkpoints in fp32`;
}

function checkpointSection(checkpoint) {
  const sizes = [
    ["full", checkpoint.full],
    ["incremental", checkpoint.incremental],
  ].filter(([, size]) => size);
  return section(
    "Checkpoints",
    checkpoint.warning && h("p", {}, checkpoint.warning),
    table(
      "Checkpoints",
      [
        { title: "Kind", head: true, cell: ([name]) => name },
        { title: "Bytes", number: true, cell: ([, size]) => format.bytes(size.bytes) },
        { title: "Snapshot", number: true, cell: ([, size]) => format.seconds(size.snapshot_seconds) },
        { title: "Slowest rank", number: true, cell: ([, size]) => size.slowest_rank },
        { title: "Upload", number: true, cell: ([, size]) => format.seconds(size.upload_seconds) },
      ],
      sizes,
    ),
    facts([
      ["Every", `${format.counted(checkpoint.interval_steps, "step")}, ${format.seconds(checkpoint.interval_seconds)}`],
      [
        "Costs",
        [`${format.seconds(checkpoint.lost_seconds_per_step)} a step `, evidence(checkpoint.snapshot_evidence)],
      ],
      checkpoint.write_reduction && [
        "Written on average",
        `${format.bytes(checkpoint.mean_write_bytes_per_second)} per second, ${timesLess(checkpoint.write_reduction)}`,
      ],
      checkpoint.stored_reduction && [
        "A restore needs",
        `${format.bytes(checkpoint.stored_bytes)} at most, ${timesLess(checkpoint.stored_reduction)}`,
      ],
      ["Restoring takes", format.seconds(checkpoint.restore_seconds)],
    ]),
  );
}
