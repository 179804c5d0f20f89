/** The first page: what is going on, and how to begin. */

import { get, post } from "../api.js";
import { may } from "../caller.js";
import { fill, h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { button, issueList, labelled, pageHead, problemPanel, section, select } from "../parts.js";
import { someChannels } from "./channels.js";
import { assumptionList } from "./plan_evidence.js";
import { newestPlans } from "./plans.js";
import { submit } from "./solve.js";
import { newestSolves } from "./solves.js";

const NUM_SHOWN = 8;

/** The page. */
export async function overviewPage() {
  const [mayAsk, solves, plans, channels] = await Promise.all([
    may("solve"),
    newestSolves(NUM_SHOWN).catch((problem) => ({ element: trouble(problem), isEmpty: false })),
    newestPlans(NUM_SHOWN).catch(trouble),
    someChannels(NUM_SHOWN).catch(trouble),
  ]);
  return {
    title: "",
    content: [
      pageHead("Plans for embedding tables", {
        kicker: "How the embedding tables of recommendation models are cut and placed on the ranks of a cluster.",
        actions: [mayAsk && link("#submit", "Ask for a plan"), link("/docs", "HTTP API")].filter(Boolean),
      }),
      solves.isEmpty
        ? [mayAsk && submitSection(), solves.element]
        : [solves.element, plans, channels, mayAsk && submitSection()],
    ],
  };
}

function trouble(problem) {
  return problemPanel(problem);
}

function submitSection() {
  const text = h("textarea", { spellcheck: "false", autocomplete: "off", "aria-label": "Spec as JSON" });
  const status = h("div", { role: "status" });
  const place = h("div", { class: "controls" });
  async function load() {
    fill(place, h("span", { class: "loading" }, "Loading an example…"));
    try {
      await loadExamples(text, place, status);
    } catch (problem) {
      const note = h("span", { class: "note" }, "No example could be had: write or paste a spec.");
      fill(place, note, button("Try again", () => fill(status) && load()));
      fill(status, problemPanel(problem));
    }
  }
  load();
  const act = (work) => async (event) => {
    event.currentTarget.disabled = true;
    const pressed = event.currentTarget;
    try {
      fill(status, await work());
    } catch (problem) {
      fill(status, problemPanel(problem));
    }
    pressed.disabled = false;
  };
  const plan = button(
    "Plan it",
    act(async () => {
      const solve = await submit(text.value);
      location.assign(`/ui/solves/${segment(solve.id)}`);
      return null;
    }),
    { class: "primary" },
  );
  const check = button(
    "Check it only",
    act(async () => checked(await post("/v1/specs:validate", text.value))),
  );
  const made = section(
    "Ask for a plan",
    h(
      "p",
      {},
      "A spec says what the tables are, what they run on and what matters. The examples work as they are. ",
      "The same can be posted to ",
      h("code", {}, "/v1/solves"),
      " or given to ",
      h("code", {}, "shardplan plan"),
      ".",
    ),
    place,
    text,
    h("div", { class: "actions" }, plan, check),
    status,
  );
  made.id = "submit";
  return made;
}

/** The specs among the examples of the API; what was written meanwhile stays. */
async function loadExamples(text, place, status) {
  const { examples } = await get("/v1/examples");
  const specs = examples.filter((example) => example.path === "/v1/solves");
  const written = async (id) => JSON.stringify(await get(`/v1/examples/${segment(id)}`), null, 2);
  const show = async (id) => {
    fill(status);
    try {
      text.value = await written(id);
    } catch (problem) {
      fill(status, problemPanel(problem));
    }
  };
  const first = await written(specs[0].id);
  if (text.value === "") text.value = first;
  fill(
    place,
    labelled(
      "Example",
      select(
        specs.map((example) => [example.id, example.summary]),
        show,
      ),
    ),
  );
}

/** The ranks among which tables are sharded, where they are not all of the job. */
function ofGroup({ world_size: all, sharding_group_size: size }) {
  return size === null || size === all ? "" : `, in sharding groups of at most ${format.count(size)}`;
}

function checked({ totals, warnings, assumptions }) {
  return h(
    "div",
    { class: "callout fine" },
    h(
      "p",
      {},
      `The spec may be solved: ${format.counted(totals.num_tables, "table")}, `,
      `${format.bytes(totals.weight_bytes)} of weights, ${format.counted(totals.world_size, "rank")}${ofGroup(totals)} `,
      `with ${format.bytes(totals.available_bytes)} for tables; ${format.counted(assumptions.length, "assumption")}.`,
    ),
    issueList(warnings),
    h("details", {}, h("summary", {}, "What would be assumed"), assumptionList(assumptions)),
  );
}
