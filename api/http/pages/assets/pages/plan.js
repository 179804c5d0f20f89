/** One plan: what it costs, who is waited for, what is full, where tables lie, and what all of it rests on. */

import { get } from "../api.js";
import { may } from "../caller.js";
import { fill, h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { button, digest, keyFigures, pageHead } from "../parts.js";
import { evidenceSection } from "./plan_evidence.js";
import { extraSections } from "./plan_extra.js";
import { reason } from "./plan_facts.js";
import { groupsText } from "./plan_groups.js";
import { memorySection } from "./plan_memory.js";
import { objectivesSection } from "./plan_objectives.js";
import { searchSection } from "./plan_search.js";
import { tablesSection } from "./plan_tables.js";
import { timeSection } from "./plan_time.js";
import { useSection } from "./plan_use.js";
import { whySection } from "./plan_why.js";

const OBJECTIVES = {
  step_time: "Step time",
  max_rank_time: "Time of the slowest rank",
  request_latency: "Latency of a request",
};

/** The page of a plan, by digest. */
export async function planPage(planDigest) {
  const [plan, mayPromote] = await Promise.all([get(`/v1/plans/${segment(planDigest)}`), may("promote")]);
  return {
    title: plan.name ? `${plan.name}: plan` : "Plan",
    content: [
      head(plan),
      figures(plan),
      timeSection(plan),
      memorySection(plan),
      tablesSection(plan),
      extraSections(plan),
      objectivesSection(plan),
      searchSection(plan),
      whySection(plan),
      evidenceSection(plan),
      useSection(plan, mayPromote),
    ],
  };
}

function head(plan) {
  const address = `/v1/plans/${segment(plan.plan_digest)}`;
  const hosts = plan.world_size / plan.ranks_per_host;
  const pods = plan.pod_size ? `, ${format.counted(plan.world_size / plan.pod_size, "pod")} of ${plan.pod_size}` : "";
  const onHosts = `(${format.counted(hosts, "host")} × ${plan.ranks_per_host}${pods})`;
  const allRanks = `${format.counted(plan.world_size, "rank")} ${onHosts}`;
  const copied = h("span", { role: "status", class: "note" });
  return pageHead(plan.name || "A plan", {
    trail: [["/ui/plans", "Plans"]],
    kicker: [
      `${plan.replica_groups ? groupsText(plan.replica_groups) : allRanks}, `,
      link(`/ui/hardware-profiles/${segment(plan.provenance.hardware_profile)}`, plan.provenance.hardware_profile),
      `, priced by ${plan.provenance.cost_model}. `,
      digest(plan.plan_digest),
    ],
    actions: [
      link("#use", "Use it"),
      link("#why", "Why is it so?"),
      link(address, "JSON"),
      button("Copy the digest", async () => {
        await navigator.clipboard?.writeText(plan.plan_digest); // browsers have none for pages that came unencrypted
        fill(copied, navigator.clipboard ? "Copied." : h("code", {}, plan.plan_digest));
      }),
      copied,
    ],
  });
}

function figures(plan) {
  const { objective, termination, provenance } = plan;
  const fullest = fullestRank(plan);
  const other = objective.name === "step_time" ? "max_rank_time" : "step_time";
  return keyFigures([
    [
      OBJECTIVES[objective.name] ?? format.words(objective.name),
      format.seconds(objective.seconds),
      plan.prediction && interval(plan.prediction),
    ],
    [
      "Lower bound",
      format.bound(objective.lower_bound_seconds),
      objective.lower_bound_seconds > 0 && "no plan is better",
    ],
    ["Gap", format.gap(objective.relative_gap), reason(termination)],
    objective[`${other}_seconds`] != null && [
      OBJECTIVES[other],
      format.seconds(objective[`${other}_seconds`]),
      "the other objective",
    ],
    fullest && ["Fullest rank", format.wholeShare(fullest.fraction), `of ${fullest.tier} on rank ${fullest.rank}`],
    [
      "Found in",
      format.seconds(provenance.found_seconds ?? provenance.solver_seconds),
      [
        provenance.partitioner && `by ${format.words(provenance.partitioner)}`,
        provenance.found_seconds != null && `of a search of ${format.seconds(provenance.solver_seconds)}`,
      ].filter(Boolean).join(", "),
    ],
  ]);
}

function interval(prediction) {
  return `${format.seconds(prediction.lower_seconds)} to ${format.seconds(prediction.upper_seconds)}`;
}

function fullestRank(plan) {
  let found = null;
  for (const rank of plan.ranks) {
    for (const [tier, used] of Object.entries(rank.bytes)) {
      const capacity = rank.capacity_bytes[tier] ?? 0;
      const fraction = capacity > 0 ? used / capacity : 0;
      if (used > 0 && (found === null || fraction > found.fraction)) found = { rank: rank.rank, tier, fraction };
    }
  }
  return found;
}
