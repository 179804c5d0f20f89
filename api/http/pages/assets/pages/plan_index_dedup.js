/** Deduplicated ids of a plan: what leaving out repeats saves and takes, and how plans with and without compare. */

import { h } from "../dom.js";
import * as format from "../format.js";
import { facts, section, table } from "../parts.js";

const STATES = { ruled_out: "cannot win", infeasible: "has no plan", not_searched: "not searched" };

/** The section about deduplicated ids. */
export function indexDedupSection(dedup, isUsed) {
  const what = "repeated ids of sequences within a rank's batch";
  return section(
    "Deduplicated ids",
    h("p", {}, isUsed ? `On: ${what} are left out before the exchange.` : `Off: ${what} are sent like all others.`),
    facts([
      ["Ids of a rank's batch", format.count(Math.round(dedup.batch_ids))],
      [
        "Unique ids",
        `${format.count(Math.round(dedup.unique_ids))}, ${format.wholeShare(dedup.removed_share)} less`,
      ],
      ["Finding unique ids", format.seconds(dedup.unique_seconds)],
      ["Repeating rows that come back", format.seconds(dedup.repeat_seconds)],
      ["Adding up gradients of repeats", format.seconds(dedup.merge_seconds)],
      ["These shards with it", format.seconds(dedup.objective_seconds_with)],
      ["These shards without it", format.seconds(dedup.objective_seconds_without)],
    ]),
    dedup.settings.length > 0 && settingsTable(dedup.settings, isUsed),
  );
}

function settingsTable(settings, isUsed) {
  return table(
    "Plans with and without deduplication",
    [
      { title: "use_index_dedup", head: true, cell: (setting) => (setting.use_index_dedup ? "on" : "off") },
      {
        title: "Objective",
        number: true,
        cell: (setting) => (setting.objective_seconds === null ? "–" : format.seconds(setting.objective_seconds)),
      },
      { title: "Lower bound", number: true, cell: (setting) => format.bound(setting.lower_bound_seconds) },
      {
        title: "",
        cell: (setting) => (setting.use_index_dedup === isUsed ? "chosen" : (STATES[setting.state] ?? "")),
      },
    ],
    settings,
  );
}
