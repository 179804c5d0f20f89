/** What a plan rests on: every number and every default, how well it is known, and who says so. */

import { breakable, h } from "../dom.js";
import * as format from "../format.js";
import { evidence, section, table } from "../parts.js";

/** From strong to weak, then what is no number. */
const LEVELS = [
  ["measured", "somebody ran it"],
  ["given", "the spec says so"],
  ["datasheet", "the maker says so"],
  ["estimated", "an assumption or a ratio: measure before trusting it"],
  ["default", "the spec left it open"],
  ["note", "worth knowing"],
];

/** The section of a plan. */
export function evidenceSection(plan) {
  const entries = Object.entries(plan.provenance.evidence ?? {}).map(([subject, entry]) => ({ subject, ...entry }));
  return section("What was assumed", assumptionList(entries));
}

/** Assumptions {subject, value, evidence, source}, grouped by how well they are known. */
export function assumptionList(entries) {
  if (entries.length === 0) return h("p", { class: "empty" }, "Nothing is recorded.");
  const of = (level) => entries.filter((entry) => entry.evidence === level);
  const levels = [...LEVELS.map(([level]) => level), ...new Set(entries.map((entry) => entry.evidence))];
  const used = [...new Set(levels)].filter((level) => of(level).length > 0);
  const meaning = Object.fromEntries(LEVELS);
  return [
    h(
      "ul",
      { class: "badges" },
      used.map((level) => h("li", {}, evidence(level), ` ${format.count(of(level).length)}`)),
    ),
    used.map((level) =>
      h(
        "details",
        { open: level === "estimated" || level === "note" },
        h("summary", {}, `${format.count(of(level).length)} ${level}`, meaning[level] && `: ${meaning[level]}`),
        assumptionTable(level, of(level)),
      ),
    ),
  ];
}

function assumptionTable(level, entries) {
  return table(
    `What is ${level}`,
    [
      { title: "What", head: true, cell: (entry) => h("code", {}, breakable(entry.subject)) },
      { title: "Value", wide: true, cell: (entry) => format.assumed(entry.value) },
      { title: "Source", wide: true, cell: (entry) => entry.source },
    ],
    entries,
  );
}
