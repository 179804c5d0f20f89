/** Keys and values of users next to the tables of a plan, and how other sizes of their cache compare. */

import * as format from "../format.js";
import { facts, section, table } from "../parts.js";

const STATES = { ruled_out: "cannot win", infeasible: "has no plan", not_searched: "not searched" };

/** The section about the cache of keys and values. */
export function kvCacheSection(cache) {
  return section(
    "Keys and values of users",
    facts([
      ["Of every rank", format.bytes(cache.bytes)],
      ["Users in the cache", format.count(Math.round(cache.users))],
      ["Requests that hit", format.wholeShare(cache.hit_rate)],
      ["A miss takes", format.seconds(cache.recompute_seconds)],
      ["A request, on average", format.seconds(cache.seconds_per_request)],
    ]),
    cache.sizes.length > 0 && sizesTable(cache.sizes, cache.bytes),
  );
}

function sizesTable(sizes, chosen) {
  const seconds = (value) => (value === null ? "–" : format.seconds(value));
  return table(
    "Sizes of the cache",
    [
      { title: "Of every rank", head: true, number: true, cell: (size) => format.bytes(size.bytes) },
      { title: "Hits", number: true, cell: (size) => format.wholeShare(size.hit_rate) },
      { title: "Recomputation", number: true, cell: (size) => seconds(size.seconds_per_request) },
      { title: "Objective", number: true, cell: (size) => seconds(size.objective_seconds) },
      { title: "Lower bound", number: true, cell: (size) => format.bound(size.lower_bound_seconds) },
      { title: "", cell: (size) => (size.bytes === chosen ? "chosen" : (STATES[size.state] ?? "")) },
    ],
    sizes,
  );
}
