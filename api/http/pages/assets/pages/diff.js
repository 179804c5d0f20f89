/** What changed from one plan to another. */

import { get } from "../api.js";
import { diffChart } from "../charts/diff.js";
import { h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { keyFigures, pageHead, planLink, section, table } from "../parts.js";
import { groupsText } from "./plan_groups.js";
import { storage } from "./plan_tables.js";

const MOST_SHOWN = 200;

/** The page of two plans, A and B, by their digests. */
export async function diffPage(first, second) {
  const [diff, a, b] = await Promise.all([
    get(`/v1/plans/${segment(first)}/diff/${segment(second)}`),
    get(`/v1/plans/${segment(first)}`),
    get(`/v1/plans/${segment(second)}`),
  ]);
  return {
    title: "Two plans",
    content: [
      pageHead(a.name === b.name ? `Two plans of ${a.name || "a model"}` : `${a.name} and ${b.name}`, {
        trail: [["/ui/plans", "Plans"]],
        kicker: [
          "A is ",
          planLink(a.plan_digest),
          `, ${ranks(a)}. B is `,
          planLink(b.plan_digest),
          `, ${ranks(b)}.`,
        ],
        actions: [
          link(`/ui/plans/${segment(second)}/diff/${segment(first)}`, "Swap A and B"),
          link(`/v1/plans/${segment(first)}/diff/${segment(second)}`, "JSON"),
        ],
      }),
      cautions(diff, a, b),
      keyFigures([
        ["Tables unchanged", format.count(diff.tables.unchanged)],
        ["Changed", format.count(diff.tables.changed.length)],
        ["New", format.count(diff.tables.new.length)],
        ["Gone", format.count(diff.tables.gone.length)],
        ["Moved", format.bytes(diff.tables.moved_bytes), "on other ranks, or cut again"],
      ]),
      numbersSection(diff),
      tablesSection(diff, a, b),
    ],
  };
}

function ranks(plan) {
  return plan.replica_groups ? groupsText(plan.replica_groups) : format.counted(plan.world_size, "rank");
}

function cautions(diff, a, b) {
  const texts = [
    diff.same_plan && "The same plan: every shard of every table is where it was.",
    JSON.stringify(a.replica_groups) !== JSON.stringify(b.replica_groups) &&
      "The sharding groups differ: ranks are numbered within a group, so that one number may be two ranks.",
    !diff.same_spec && "The specs differ: seconds may differ for reasons other than the placement.",
    !diff.same_prices &&
      `Priced by ${a.provenance.cost_model} (A) and ${b.provenance.cost_model} (B): the seconds cannot be compared.`,
  ].filter(Boolean);
  return (
    texts.length > 0 &&
    h(
      "div",
      { class: "callout" },
      texts.map((text) => h("p", {}, text)),
    )
  );
}

function numbersSection(diff) {
  const seconds = [...Object.entries(diff.objectives), ...Object.entries(diff.phases)];
  const rows = [
    ...seconds.map(([name, pair]) => ({ name: format.words(name), pair, written: format.seconds })),
    ...Object.entries(diff.fullest_rank_bytes).map(([tier, pair]) => ({
      name: `fullest rank, ${tier}`,
      pair,
      written: format.bytes,
    })),
  ];
  const phases = Object.entries(diff.phases);
  return section(
    "Objectives, phases and memory",
    table(
      "Objectives, phases and memory",
      [
        { title: "", head: true, cell: (row) => row.name },
        { title: "A", number: true, cell: (row) => row.written(row.pair.a) },
        { title: "B", number: true, cell: (row) => row.written(row.pair.b) },
        {
          title: "Change",
          number: true,
          cell: (row) => h("span", { class: direction(row.pair) }, format.change(row.pair)),
        },
      ],
      rows,
    ),
    phases.length > 0 && diffChart(phases),
  );
}

function direction(pair) {
  return pair.b < pair.a ? "better" : pair.b > pair.a ? "worse" : null;
}

function tablesSection(diff, a, b) {
  const before = new Map(a.tables.map((entry) => [entry.name, entry]));
  const after = new Map(b.tables.map((entry) => [entry.name, entry]));
  const { changed, new: added, gone } = diff.tables;
  const names = [...changed, ...added, ...gone];
  if (names.length === 0) return null;
  const rows = names.slice(0, MOST_SHOWN).map((name) => ({ name, a: before.get(name), b: after.get(name) }));
  return section(
    "Tables that differ",
    table(
      "Tables that differ",
      [
        { title: "Table", head: true, wide: true, cell: (row) => row.name },
        { title: "In A", wide: true, cell: (row) => cut(row.a, row.b) },
        { title: "In B", wide: true, cell: (row) => cut(row.b, row.a) },
      ],
      rows,
    ),
    names.length > rows.length &&
      h("p", { class: "note" }, `and ${format.counted(names.length - rows.length, "more table")}`),
  );
}

/** How a table is cut, and its rows and columns where the other plan has other ones. */
function cut(entry, other) {
  if (!entry) return "not there";
  const resized = other && size(entry) !== size(other) ? `${size(entry)}, ` : "";
  return `${resized}${format.words(entry.sharding_type)} on ${onRanks(entry)} (${storage(entry)})`;
}

function size(entry) {
  const end = (offset, length) =>
    entry.shards.reduce((most, shard) => Math.max(most, shard[offset] + shard[length]), 0);
  return `${format.count(end("row_offset", "num_rows"))} × ${format.count(end("column_offset", "num_columns"))}`;
}

function onRanks(entry) {
  const ranks = new Set(entry.shards.map((shard) => shard.rank));
  return `${ranks.size === 1 ? "rank" : "ranks"} ${format.ranges(ranks)}`;
}
