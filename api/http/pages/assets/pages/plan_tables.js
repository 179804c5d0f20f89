/** The tables of a plan: how they are cut, how large they are, where they lie. */

import { treemap } from "../charts/treemap.js";
import { fill, h } from "../dom.js";
import * as format from "../format.js";
import { button, labelled, section, select, table } from "../parts.js";
import { SCHEMES } from "../schemes.js";

/** Colours of schemes, in the order of SCHEMES. */
const COLOURS = [0, 1, 2, 4, 5, 6, 7];
const UNKNOWN_COLOUR = 9;
const FIRST_SHOWN = 12;
const LEAST_DRAWN = 1 / 20_000; // of all bytes: a shard of less is no pixel
const SMALL_COLOUR = 7;

/** How a scheme cuts a table, in words; over what a group is: `host` or `pod`. */
function schemeWords(scheme, group) {
  return (SCHEMES.get(scheme) ?? format.words(scheme)).replace("{group}", group);
}

/** What ranks that stay near are: the ranks of a pod, or else of a host. */
function groupOf(plan) {
  return plan.pod_size ? "pod" : "host";
}

/** The number of the colour of a scheme. */
function schemeColour(scheme) {
  return COLOURS[[...SCHEMES.keys()].indexOf(scheme)] ?? UNKNOWN_COLOUR;
}

/** Bytes of all shards of a table. */
function tableBytes(entry) {
  return entry.shards.reduce((sum, shard) => sum + shard.bytes, 0);
}

/** Where the tables lie, as a map and as a list. */
export function tablesSection(plan) {
  const tables = [...plan.tables].sort((a, b) => tableBytes(b) - tableBytes(a) || a.name.localeCompare(b.name));
  const list = tableList(tables);
  let grouping = bySchemes;
  const used = [...SCHEMES.keys()].filter((scheme) => tables.some((entry) => entry.sharding_type === scheme));
  const map = treemap({
    title: "Tables by their bytes",
    caption:
      "An area is the bytes of a table with its optimizer state, a colour how it is cut. Choose one to find it below.",
    groups: () => grouping(tables, plan),
    format: format.bytes,
    legend: used.map((scheme) => [format.words(scheme), schemeColour(scheme)]),
    chosen: list.find,
    table: () => schemeTable(tables, plan),
  });
  const groups = select(
    [
      ["scheme", "how they are cut"],
      ["rank", "the rank that holds them"],
    ],
    (name) => {
      grouping = name === "rank" ? byRanks : bySchemes;
      map.redraw();
    },
  );
  return section(
    "Tables",
    h(
      "p",
      {},
      `${format.counted(tables.length, "table")} in ${format.counted(
        tables.reduce((sum, entry) => sum + entry.shards.length, 0),
        "shard",
      )}.`,
    ),
    h("div", { class: "controls" }, labelled("Group by", groups)),
    map.element,
    h("h3", {}, "All tables"),
    list.element,
  );
}

function bySchemes(tables, plan) {
  return [...SCHEMES.keys()]
    .map((scheme) => ({
      name: `${format.words(scheme)}: ${schemeWords(scheme, groupOf(plan))}`,
      colour: schemeColour(scheme),
      children: tables
        .filter((entry) => entry.sharding_type === scheme)
        .map((entry) => ({ name: entry.name, value: tableBytes(entry), lines: tooltipLines(entry) })),
    }))
    .filter((group) => group.children.length > 0);
}

function byRanks(tables) {
  const held = new Map();
  for (const entry of tables) {
    const colour = schemeColour(entry.sharding_type);
    for (const shard of entry.shards) {
      if (!held.has(shard.rank)) held.set(shard.rank, []);
      held.get(shard.rank).push({ name: entry.name, value: shard.bytes, colour, lines: tooltipLines(entry) });
    }
  }
  const least = tables.reduce((sum, entry) => sum + tableBytes(entry), 0) * LEAST_DRAWN;
  return [...held]
    .sort(([a], [b]) => a - b)
    .map(([rank, shards]) => ({ name: `rank ${rank}`, children: withoutSmall(shards, least) }));
}

/** Areas of a rank; those that are too small to see become one. */
function withoutSmall(areas, least) {
  const large = areas.filter((area) => area.value >= least);
  const small = areas.filter((area) => area.value < least);
  if (small.length < 2) return areas;
  return [
    ...large,
    {
      name: `${format.count(small.length)} small shards`,
      value: small.reduce((sum, area) => sum + area.value, 0),
      colour: SMALL_COLOUR,
    },
  ];
}

function tooltipLines(entry) {
  return [
    ["cut", format.words(entry.sharding_type)],
    ["shards", entry.shards.length],
    ["kernel", storage(entry)],
  ];
}

/** How the rows of a table are kept. */
export function storage(entry) {
  const parts = [format.words(entry.compute_kernel)];
  if (entry.cache_load_factor) parts.push(`${format.digits(entry.cache_load_factor * 100)}% cached`);
  const hot = hotShare(entry);
  if (hot) parts.push(`hottest ${format.digits(hot.share * 100)}% in ${hot.tier}`);
  if (entry.data_type) parts.push(entry.data_type);
  if (entry.hash_table_mode) parts.push(`${entry.hash_table_mode} slots`);
  return parts.join(", ");
}

/** Which share of the rows lies in a faster tier than the others, of tables that are split by heat; else null. */
function hotShare(entry) {
  const [tier, ...others] = new Set(entry.shards.filter((shard) => shard.row_offset === 0).map((shard) => shard.tier));
  const cells = (shards) => shards.reduce((sum, shard) => sum + shard.num_rows * shard.num_columns, 0);
  const inTier = entry.shards.filter((shard) => shard.tier === tier);
  if (others.length > 0 || inTier.length === entry.shards.length) return null;
  return { tier, share: cells(inTier) / cells(entry.shards) };
}

function schemeTable(tables, plan) {
  const rows = [...SCHEMES.keys()]
    .map((scheme) => [scheme, tables.filter((entry) => entry.sharding_type === scheme)])
    .filter(([, entries]) => entries.length > 0);
  return table(
    "How the tables are cut",
    [
      { title: "Scheme", head: true, cell: ([scheme]) => format.words(scheme) },
      { title: "In words", cell: ([scheme]) => schemeWords(scheme, groupOf(plan)) },
      { title: "Tables", number: true, cell: ([, entries]) => format.count(entries.length) },
      {
        title: "Shards",
        number: true,
        cell: ([, entries]) => format.count(entries.reduce((sum, entry) => sum + entry.shards.length, 0)),
      },
      {
        title: "Bytes",
        number: true,
        cell: ([, entries]) => format.bytes(entries.reduce((sum, entry) => sum + tableBytes(entry), 0)),
      },
    ],
    rows,
  );
}

/** The list, largest first; a search over names narrows it. */
function tableList(tables) {
  const field = h("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  const shown = h("div", {});
  const status = h("p", { class: "note", role: "status" });
  let all = tables.length <= FIRST_SHOWN;
  const more = button(`Show all ${format.count(tables.length)}`, () => {
    all = true;
    draw();
  });
  function draw() {
    const sought = field.value.toLowerCase();
    const found = tables.filter((entry) => entry.name.toLowerCase().includes(sought));
    const rows = all ? found : found.slice(0, FIRST_SHOWN);
    fill(shown, listed(rows));
    more.hidden = all || found.length <= rows.length;
    fill(
      status,
      rows.length < found.length
        ? `The largest ${rows.length} of ${format.count(found.length)}.`
        : sought && `${format.counted(found.length, "table")} found.`,
    );
  }
  field.addEventListener("input", draw);
  draw();
  const element = h(
    "div",
    {},
    tables.length > 8 && h("div", { class: "controls" }, labelled("Find by name", field)),
    shown,
    status,
    more,
  );
  return {
    element,
    find: (name) => {
      field.value = name;
      draw();
      element.scrollIntoView({ block: "center" });
    },
  };
}

function listed(rows) {
  return table(
    "Tables, the largest first",
    [
      { title: "Table", head: true, wide: true, cell: (entry) => entry.name },
      { title: "Bytes", number: true, cell: (entry) => format.bytes(tableBytes(entry)) },
      { title: "Cut", cell: (entry) => format.words(entry.sharding_type) },
      { title: "Kept", cell: (entry) => storage(entry) },
      { title: "Memory", cell: (entry) => [...new Set(entry.shards.map((shard) => shard.tier))].join(", ") },
      { title: "Shards", number: true, cell: (entry) => format.count(entry.shards.length) },
      { title: "Ranks", cell: (entry) => format.ranges(entry.shards.map((shard) => shard.rank)) },
    ],
    rows,
    { empty: "No table has this in its name." },
  );
}
