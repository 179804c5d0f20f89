/** Chooses the page by the address, and shows what goes wrong. */

import { get, Problem } from "./api.js";
import { fill, h } from "./dom.js";
import { sentence } from "./format.js";
import { missing, problemPanel } from "./parts.js";
import { channelPage } from "./pages/channel.js";
import { channelsPage } from "./pages/channels.js";
import { costModelPage } from "./pages/cost_model.js";
import { costModelsPage } from "./pages/cost_models.js";
import { diffPage } from "./pages/diff.js";
import { overviewPage } from "./pages/overview.js";
import { planPage } from "./pages/plan.js";
import { plansPage } from "./pages/plans.js";
import { profilePage } from "./pages/profile.js";
import { profilesPage } from "./pages/profiles.js";
import { solvePage } from "./pages/solve.js";
import { solvesPage } from "./pages/solves.js";

// The one policy for markup made of text: only none of it, with which the chart library clears its elements.
globalThis.trustedTypes?.createPolicy("default", { createHTML: (text) => (text === "" ? text : null) });

/** Each page gets the parts of its address; the server knows the same addresses (`api/pages/site.py`). */
const PAGES = [
  [/^\/$/, overviewPage],
  [/^\/ui\/solves$/, solvesPage],
  [/^\/ui\/solves\/([^/]+)$/, solvePage],
  [/^\/ui\/plans$/, plansPage],
  [/^\/ui\/plans\/([^/]+)$/, planPage],
  [/^\/ui\/plans\/([^/]+)\/diff\/([^/]+)$/, diffPage],
  [/^\/ui\/channels$/, channelsPage],
  [/^\/ui\/channels\/(.+)$/, channelPage],
  [/^\/ui\/hardware-profiles$/, profilesPage],
  [/^\/ui\/hardware-profiles\/([^/]+)$/, profilePage],
  [/^\/ui\/cost-models$/, costModelsPage],
  [/^\/ui\/cost-models\/([^/]+)$/, costModelPage],
];

async function show() {
  const main = document.getElementById("main");
  markNavigation();
  const [page, parts] = chosen();
  if (page === null) {
    document.title = "No such page - shardplan";
    fill(main, missing("No such page", "Nothing of this service has this address."));
    return;
  }
  fill(main, h("p", { class: "loading", role: "status" }, "Loading…"));
  try {
    const { title, content } = await page(...parts);
    document.title = title === "" ? "shardplan" : `${title} - shardplan`;
    fill(main, content);
  } catch (problem) {
    const isMissing = problem instanceof Problem && (problem.status === 404 || problem.status === 400);
    document.title = `${isMissing ? "Not found" : "Trouble"} - shardplan`;
    fill(main, isMissing ? missing("Not found", sentence(problem.message)) : problemPanel(problem, "h1"));
    if (!(problem instanceof Problem)) throw problem;
  }
}

function chosen() {
  for (const [pattern, page] of PAGES) {
    const found = pattern.exec(location.pathname);
    if (found) {
      try {
        return [page, found.slice(1).map(decodeURIComponent)];
      } catch {
        return [null, []]; // no text has this spelling
      }
    }
  }
  return [null, []];
}

function markNavigation() {
  for (const entry of document.querySelectorAll("nav a")) {
    const path = entry.getAttribute("href");
    const isHere = path === "/" ? location.pathname === "/" : location.pathname.startsWith(path);
    if (isHere) entry.setAttribute("aria-current", location.pathname === path ? "page" : "true");
  }
}

async function showRelease() {
  const { version } = await get("/version");
  fill(
    document.getElementById("release"),
    `shardplan ${version}. Seconds are predictions of a cost model; bytes are counted.`,
  );
}

show();
showRelease().catch(() => {}); // a page without its last line is still a page
