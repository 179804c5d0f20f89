/** Why a plan is as it is: what it waits for, what hardware would buy, what else its tables could be. */

import { get } from "../api.js";
import { fill, h, segment } from "../dom.js";
import * as format from "../format.js";
import { button, evidence, problemPanel, section, table } from "../parts.js";

/** The section; the service computes an explanation when it is asked for. */
export function whySection(plan) {
  const body = h("div", { "aria-live": "polite" });
  const ask = button("Explain this plan", async () => {
    ask.disabled = true;
    fill(body, h("p", { class: "loading" }, "Computing…"));
    try {
      fill(body, explanation(await get(`/v1/plans/${segment(plan.plan_digest)}/explanation`)));
      ask.hidden = true;
    } catch (problem) {
      fill(body, problemPanel(problem));
      ask.disabled = false;
    }
  });
  const made = section(
    "Why it is so",
    h("p", {}, "What the plan waits for, what more hardware would buy, and what else its heaviest tables could be."),
    ask,
    body,
  );
  made.id = "why";
  return made;
}

function explanation(explained) {
  return [
    h("h3", {}, "What it waits for"),
    table(
      "Phases that the objective counts",
      [
        { title: "Phase", head: true, cell: (phase) => format.words(phase.name) },
        { title: "Counts", number: true, cell: (phase) => format.seconds(phase.exposed_seconds) },
        { title: "Of the objective", number: true, cell: (phase) => format.wholeShare(phase.objective_share) },
        { title: "Waits for", cell: (phase) => (phase.rate === null ? "no rate" : format.words(phase.rate)) },
        { title: "Ranks within 1% of the slowest", wide: true, cell: (phase) => format.ranges(phase.ranks) },
        { title: "Evidence", cell: (phase) => evidence(phase.evidence) },
      ],
      explained.phases,
    ),
    h("p", {}, binding(explained.binding)),
    h("h3", {}, "Memory tiers"),
    table(
      "Tiers on their fullest and their busiest rank",
      [
        { title: "Tier", head: true, cell: (use) => use.tier },
        { title: "Holds", number: true, cell: (use) => format.bytes(use.used_bytes) },
        { title: "Of", number: true, cell: (use) => format.bytes(use.capacity_bytes) },
        {
          title: `Busy in a ${format.unitOfWork(explained.objective.name)}`,
          number: true,
          cell: (use) => (use.busiest_rank === null ? "" : format.seconds(use.busy_seconds)),
        },
        { title: "Most of it at", cell: (use) => (use.rate === null ? "" : format.words(use.rate)) },
      ],
      explained.tiers,
    ),
    h("h3", {}, "What more hardware would buy"),
    table(
      "Changes of the hardware",
      [
        { title: "Of", head: true, cell: (price) => format.words(price.resource) },
        { title: "Change", cell: (price) => price.change },
        {
          title: "Saves",
          cell: (price) =>
            price.saved_seconds === null
              ? "unknown"
              : `${format.words(price.direction)} ${format.seconds(price.saved_seconds)}`,
        },
        { title: "Evidence", cell: (price) => evidence(price.evidence) },
        { title: "Note", wide: true, cell: (price) => price.note },
      ],
      explained.shadow_prices,
    ),
    h("h3", {}, `The ${explained.tables.length} heaviest of ${format.counted(explained.num_tables, "table")}`),
    table(
      "Tables that weigh most on the slowest ranks",
      [
        { title: "Table", head: true, wide: true, cell: (entry) => entry.name },
        { title: "On the slowest ranks", number: true, cell: (entry) => format.seconds(entry.binding_seconds) },
        { title: "Reason", wide: true, cell: (entry) => entry.reason },
      ],
      explained.tables,
    ),
  ];
}

/** Name the rate and the tiers that the plan waits for. */
function binding({ rate, tiers }) {
  const most = rate === null ? "No rate binds" : `The rate that binds most is ${format.words(rate)}`;
  return `${most}; ${tiers.length ? `memory that binds: ${tiers.join(" and ")}` : "no memory binds"}.`;
}
