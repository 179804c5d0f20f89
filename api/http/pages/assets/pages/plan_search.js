/** How the search for a plan went: its gap over time. */

import { get } from "../api.js";
import { gapChart } from "../charts/gap.js";
import { fill, h, link, segment } from "../dom.js";
import { followSolve } from "../events.js";
import * as format from "../format.js";
import { problemPanel, section } from "../parts.js";
import { listedPlan, reason } from "./plan_facts.js";
import { gapParts } from "./plan_gap.js";

/** The section, which fills itself when the solve of the plan has been found. */
export function searchSection(plan) {
  const { objective, termination } = plan;
  const body = h("div", {}, h("p", { class: "loading" }, "Loading…"));
  load(plan, body).catch((problem) => fill(body, problemPanel(problem)));
  return section(
    "Search",
    h(
      "p",
      {},
      `${format.sentence(reason(termination))} The best plan is ${format.seconds(objective.seconds)}, `,
      `the bound ${format.bound(objective.lower_bound_seconds)}, the gap ${format.gap(objective.relative_gap)}. `,
      format.sentence(termination.detail),
    ),
    gapParts(plan),
    body,
  );
}

async function load(plan, body) {
  const listed = await listedPlan(plan);
  if (!listed?.solve_id) {
    fill(body, h("p", { class: "empty" }, "The solve of this plan is not kept here, so its course cannot be shown."));
    return;
  }
  const solve = await get(`/v1/solves/${segment(listed.solve_id)}`);
  const events = await pastEvents(solve);
  const chart = events.length > 0 && gapChart(events, () => solveSeconds(solve)).element;
  fill(
    body,
    chart || h("p", { class: "empty" }, "No progress of this solve is kept."),
    h("p", {}, link(`/ui/solves/${segment(solve.id)}`, "The solve")),
  );
}

/** Seconds from the start of a solve to its end, null where it has not both. */
export function solveSeconds(solve) {
  return solve.started_at && solve.ended_at ? (new Date(solve.ended_at) - new Date(solve.started_at)) / 1000 : null;
}

function pastEvents(solve) {
  const events = [];
  return new Promise((resolve) => {
    followSolve(solve.id, {
      progress: (event) => events.push(event),
      ended: () => resolve(events),
      gone: () => resolve(events),
    });
  });
}
