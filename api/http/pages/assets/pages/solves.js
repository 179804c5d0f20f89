/** The list of solves; those that run are followed. */

import { get, withQuery } from "../api.js";
import { fill, h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { labelled, outcomeOf, pageHead, pages, planLink, section, select, state, table, time } from "../parts.js";

const STATES = ["queued", "running", "succeeded", "failed", "cancelled"];
const REFRESH_MILLISECONDS = 2000;

/** The page. */
export async function solvesPage() {
  const list = h("div", {});
  let chosen = "";
  const draw = async () => fill(list, await pages((token) => load(chosen, token), solveTable));
  await draw();
  const choice = select([["", "all"], ...STATES.map((name) => [name, name])], (name) => {
    chosen = name;
    draw();
  });
  return {
    title: "Solves",
    content: [
      pageHead("Solves", { kicker: "A solve is one search for a plan, newest first." }),
      h("section", { "aria-label": "Solves" }, h("div", { class: "controls" }, labelled("State", choice)), list),
    ],
  };
}

async function load(chosen, token) {
  const page = await get(withQuery("/v1/solves", { page_size: 50, page_token: token, state: chosen }));
  return { rows: page.solves, next: page.next_page_token };
}

const isOpen = (solve) => solve.state === "queued" || solve.state === "running";

/** A table of solves, which asks again for those that have not ended. */
function solveTable(solves) {
  return table(
    "Solves, newest first",
    [
      {
        title: "Name",
        head: true,
        wide: true,
        cell: (solve) => link(`/ui/solves/${segment(solve.id)}`, solve.name || solve.id),
      },
      { title: "State", cell: (solve) => following(solve, () => state(outcomeOf(solve))) },
      { title: "Best plan", number: true, cell: (solve) => following(solve, () => best(solve)) },
      { title: "Gap", number: true, cell: (solve) => following(solve, () => gapOf(solve)) },
      {
        title: "Plan",
        cell: (solve) => following(solve, () => (solve.result?.plan_digest ? planLink(solve.result.plan_digest) : "")),
      },
      { title: "Asked for", cell: (solve) => time(solve.created_at) },
    ],
    solves.map((solve) => ({ ...solve })),
    { empty: "No solves yet.", stacks: true },
  );
}

function best(solve) {
  const seconds = solve.result?.objective?.seconds ?? solve.progress?.incumbent_seconds;
  if (seconds !== undefined) return format.seconds(seconds);
  return solve.result?.termination.reason === "INFEASIBLE" ? "no plan exists" : "";
}

function gapOf(solve) {
  const known = solve.result?.objective ?? solve.progress;
  return known ? format.gap(known.relative_gap) : "";
}

/** A cell that shows a solve as it is, and is drawn again until the solve has ended. */
function following(solve, show) {
  const cell = h("span", { class: "follows" }, show());
  if (isOpen(solve)) (solve.cells ??= watch(solve)).push(() => fill(cell, show()));
  return cell;
}

/** Ask for a solve again and again until it has ended; returns the list of what to draw then. */
function watch(solve) {
  const cells = [];
  const again = async () => {
    try {
      Object.assign(solve, await get(`/v1/solves/${segment(solve.id)}`));
    } catch {
      return; // the page says what was known last
    }
    for (const draw of cells) draw();
    if (isOpen(solve)) setTimeout(again, REFRESH_MILLISECONDS);
  };
  setTimeout(again, REFRESH_MILLISECONDS);
  return cells;
}

/** The newest solves as a section of another page, and whether there are any. */
export async function newestSolves(number) {
  const { solves } = await get(`/v1/solves?page_size=${number}`);
  const element = section(
    "Newest solves",
    solveTable(solves),
    solves.length > 0 && h("p", {}, link("/ui/solves", "All solves")),
  );
  return { element, isEmpty: solves.length === 0 };
}
