/** Pieces that pages are made of. */

import { Problem } from "./api.js";
import { fill, h, link, newId, segment } from "./dom.js";
import * as format from "./format.js";

/** A section with a heading. */
export function section(title, ...children) {
  const id = newId("section");
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), children);
}

/** The head of a page: where one is, what it is about, and what can be done. */
export function pageHead(title, { trail = [], kicker = null, actions = [] } = {}) {
  const crumbs = trail.map(([href, name]) => h("li", {}, link(href, name)));
  return h(
    "div",
    { class: "head" },
    crumbs.length > 0 && h("nav", { "aria-label": "Where this is", class: "trail" }, h("ol", {}, crumbs)),
    h("h1", {}, title),
    kicker && h("p", { class: "kicker" }, kicker),
    actions.length > 0 && h("div", { class: "actions" }, actions),
  );
}

/** A few numbers that matter most; entries are [label, value, note]. */
export function keyFigures(entries) {
  const shown = entries.filter(Boolean);
  return h(
    "dl",
    { class: "figures" },
    shown.map(([label, value, note]) =>
      h(
        "div",
        {},
        h("dt", {}, label),
        h("dd", {}, h("span", { class: "value" }, value), note && h("span", { class: "note" }, note)),
      ),
    ),
  );
}

/** Names and values, one line each. */
export function facts(entries) {
  return h(
    "dl",
    { class: "facts" },
    entries.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/**
 * A table that scrolls by itself where the window is narrow, also from the keyboard.
 *
 * A column is {title, cell, number, wide, head}: `cell` makes a node or text of a row; numbers are flush right; `wide`
 * text may break; the `head` column names its row. If a column next to the head is wide, or `stacks` asks for it,
 * rows become blocks in a narrow window; roles say then what the cells still are.
 */
export function table(caption, columns, rows, options = {}) {
  const { empty = "Nothing yet.", hideCaption = true, bodies = null } = options;
  if (rows.length === 0 && bodies === null) return h("p", { class: "empty" }, empty);
  const id = newId("table");
  const stacks = options.stacks ?? columns.some((column) => column.wide && !column.head);
  const role = (name) => (stacks ? name : null);
  const kind = (column) => [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ") || null;
  const cell = (column, entry) =>
    column.head
      ? h("th", { scope: "row", role: role("rowheader"), class: kind(column) }, column.cell(entry))
      : h("td", { role: role("cell"), class: kind(column), "data-title": column.title }, column.cell(entry));
  const row = (cells) => h("tr", { role: role("row") }, cells);
  const heads = columns.map((column) =>
    h("th", { scope: "col", role: role("columnheader"), class: kind(column) }, column.title),
  );
  const body = ([heading, entries]) =>
    h(
      "tbody",
      { role: role("rowgroup") },
      heading && row(h("th", { scope: "rowgroup", colspan: columns.length }, heading)),
      entries.map((entry) => row(columns.map((column) => cell(column, entry)))),
    );
  return h(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-labelledby": id },
    h(
      "table",
      { class: stacks ? "stacks" : null, role: role("table"), "aria-labelledby": role(id) },
      h("caption", { id, class: hideCaption ? "quiet" : null }, caption),
      h("thead", { role: role("rowgroup") }, row(heads)),
      (bodies ?? [[null, rows]]).map(body),
    ),
  );
}

/** How well a number is known; the word stands there, the colour only helps. */
export function evidence(level) {
  return level ? h("span", { class: "badge", "data-evidence": level }, level) : "";
}

/** The state of a solve or of a model. */
export function state(name) {
  return h("span", { class: "badge", "data-state": name }, name);
}

/** What a solve came to in a word: its state, but a search that ended well without a plan is no success. */
export function outcomeOf(solve) {
  if (solve.state !== "succeeded" || !solve.result || solve.result.plan_digest) return solve.state;
  return solve.result.termination.reason === "INFEASIBLE" ? "infeasible" : "no plan";
}

/** A digest, short for the eye, whole for who copies it. */
export function digest(text) {
  return h("code", { title: text }, format.shortDigest(text));
}

/** A link to a plan, by its digest. */
export function planLink(planDigest) {
  return h(
    "a",
    { href: `/ui/plans/${segment(planDigest)}`, title: planDigest, class: "code" },
    format.shortDigest(planDigest),
  );
}

/** A moment, in the reader's time zone. */
export function time(iso) {
  return iso ? h("time", { datetime: iso, title: iso }, format.moment(iso)) : "";
}

/** A button. */
export function button(label, click, attributes = {}) {
  return h("button", { type: "button", click, ...attributes }, label);
}

/** A label and its control. */
export function labelled(label, control) {
  return h("label", { class: "labelled" }, h("span", {}, label), control);
}

/** A choice; `options` are [value, name]. */
export function select(options, changed, chosen = null) {
  const control = h("select", { change: () => changed(control.value) });
  for (const [value, name] of options) control.append(h("option", { value, selected: value === chosen }, name));
  return control;
}

/** What went wrong, with the way out. */
export function problemPanel(problem, heading = "h2") {
  const stated = problem instanceof Problem ? problem.document : { title: "These pages failed", detail: String(problem) };
  const errors = stated.errors ?? [];
  const more = (stated.num_errors ?? errors.length) - errors.length;
  return h(
    "div",
    { class: "problem", role: "alert" },
    h(heading, {}, stated.title || "Trouble"),
    h("p", {}, stated.detail),
    issueList(errors),
    more > 0 && h("p", {}, `and ${format.count(more)} more`),
    stated.request_id && h("p", { class: "note" }, "Request ", h("code", {}, stated.request_id)),
  );
}

/** Problems or warnings of a document: where, what, and the way out. */
export function issueList(issues) {
  if (issues.length === 0) return null;
  return h(
    "ul",
    { class: "issues" },
    issues.map((issue) =>
      h(
        "li",
        {},
        issue.pointer && h("code", {}, issue.pointer),
        " ",
        issue.message,
        issue.hint && h("span", { class: "hint" }, issue.hint),
      ),
    ),
  );
}

/** A page about something that is not there. */
export function missing(title, detail) {
  return h(
    "div",
    { class: "missing" },
    h("h1", {}, title),
    h("p", {}, detail),
    h(
      "p",
      {},
      "Look among the ",
      link("/ui/solves", "solves"),
      ", the ",
      link("/ui/plans", "plans"),
      " and the ",
      link("/ui/channels", "channels"),
      ", or begin at the ",
      link("/", "overview"),
      ".",
    ),
  );
}

/**
 * A list that grows page by page.
 *
 * `load(token)` answers {rows, next}; `show(rows)` makes the element of all rows so far.
 */
export async function pages(load, show) {
  const rows = [];
  const list = h("div", {});
  const status = h("p", { class: "quiet", role: "status" });
  let token = null;
  const more = button("Show more", () => next().catch((problem) => fill(status, problemPanel(problem))));
  async function next() {
    more.disabled = true;
    try {
      const page = await load(token);
      rows.push(...page.rows);
      token = page.next;
      fill(list, show(rows));
      if (rows.length > page.rows.length) fill(status, `${format.count(rows.length)} shown`);
    } finally {
      more.disabled = false;
      more.hidden = token === null;
    }
  }
  await next();
  return h("div", {}, list, more, status);
}
