/** Chooses the page by the address, and shows what goes wrong. */

import { get, KEY_NEEDED, Problem, save } from "./api.js";
import { fill, h } from "./dom.js";
import { sentence } from "./format.js";
import { forgetKey, keepKey, storedKey } from "./key.js";
import { button, labelled, missing, pageHead, problemPanel } from "./parts.js";
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
import { studiesPage } from "./pages/studies.js";
import { studyPage } from "./pages/study.js";

// The one policy for markup made of text: only none of it, with which the chart library clears its elements.
globalThis.trustedTypes?.createPolicy("default", { createHTML: (text) => (text === "" ? text : null) });

/** Each page gets the parts of its address; the server knows the same addresses (`api/http/pages/site.py`). */
const PAGES = [
  [/^\/$/, overviewPage],
  [/^\/ui\/solves$/, solvesPage],
  [/^\/ui\/solves\/([^/]+)$/, solvePage],
  [/^\/ui\/plans$/, plansPage],
  [/^\/ui\/plans\/([^/]+)$/, planPage],
  [/^\/ui\/plans\/([^/]+)\/diff\/([^/]+)$/, diffPage],
  [/^\/ui\/studies$/, studiesPage],
  [/^\/ui\/studies\/([^/]+)$/, studyPage],
  [/^\/ui\/channels$/, channelsPage],
  [/^\/ui\/channels\/(.+)$/, channelPage],
  [/^\/ui\/hardware-profiles$/, profilesPage],
  [/^\/ui\/hardware-profiles\/([^/]+)$/, profilePage],
  [/^\/ui\/cost-models$/, costModelsPage],
  [/^\/ui\/cost-models\/([^/]+)$/, costModelPage],
];

/** How often something was shown in place of what was there: what comes late for an earlier time is not shown. */
let turn = 0;
let isAskingForKey = false;

async function show() {
  const mine = ++turn;
  isAskingForKey = false;
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
    if (mine !== turn) return;
    document.title = title === "" ? "shardplan" : `${title} - shardplan`;
    fill(main, content);
  } catch (problem) {
    if (mine !== turn) return;
    const isMissing = problem instanceof Problem && (problem.status === 404 || problem.status === 400);
    document.title = `${isMissing ? "Not found" : "Trouble"} - shardplan`;
    fill(main, isMissing ? missing("Not found", notFound(problem)) : problemPanel(problem, "h1"));
    if (!(problem instanceof Problem)) throw problem;
  }
}

/** What is not there, and what its address would look like. */
function notFound(problem) {
  const hints = (problem.document.errors ?? []).map((error) => error.hint).filter((hint) => hint);
  return [problem.message, ...hints].map(sentence).join(" ");
}

globalThis.addEventListener(KEY_NEEDED, ({ detail }) => {
  if (isAskingForKey) return;
  isAskingForKey = true;
  turn += 1;
  document.title = "Key - shardplan";
  const main = document.getElementById("main");
  fill(main, keyForm(detail));
  main.querySelector("input").focus();
});

/** Asks for the key that the server wants to see. */
function keyForm(problem) {
  const field = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const isFirst = storedKey() === null;
  return h(
    "form",
    {
      submit: (event) => {
        event.preventDefault();
        keepKey(field.value);
        begin();
      },
    },
    pageHead(isFirst ? "A key is needed" : "The key is not accepted"),
    h("p", {}, isFirst ? "This server shows what it has to those who show a key." : sentence(problem.message)),
    h("div", { class: "controls" }, labelled("Key", field), h("button", { type: "submit" }, "Use it")),
    h("p", { class: "note" }, "This tab alone keeps it, until it is closed. An operator of the server makes keys."),
  );
}

/** Links to documents: a browser that follows one shows no key, so with a key they are saved as files. */
document.addEventListener("click", (event) => {
  const found = event.target instanceof Element ? event.target.closest('a[href^="/v1/"]') : null;
  if (found === null || storedKey() === null) return;
  event.preventDefault();
  save(found.getAttribute("href")).catch((problem) => found.after(" ", problemPanel(problem)));
});

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
    `shardplan ${version}. Seconds are predictions of a cost model; bytes are counted. `,
    storedKey() !== null && button("Forget the key", leave),
  );
}

/** Forget the key, and everything on the page that it let us see. */
function leave() {
  forgetKey();
  location.reload();
}

function begin() {
  show();
  showRelease().catch(() => {}); // a page without its last line is still a page
}

begin();
