/** The list of plans. */

import { get, withQuery } from "../api.js";
import { h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { labelled, pageHead, pages, section, table, time } from "../parts.js";

/** The page. `?name=` shows the plans of one name. */
export async function plansPage() {
  const name = new URLSearchParams(location.search).get("name") ?? "";
  const list = await pages((token) => load(name, token), planTable);
  const field = h("input", { name: "name", type: "search", value: name, autocomplete: "off", spellcheck: "false" });
  const search = (event) => {
    event.preventDefault();
    location.assign(withQuery("/ui/plans", { name: field.value }));
  };
  return {
    title: "Plans",
    content: [
      pageHead("Plans", { kicker: "A plan never changes; its address is its digest. Newest first." }),
      h(
        "section",
        { "aria-label": "Plans" },
        h(
          "form",
          { submit: search, role: "search" },
          h(
            "div",
            { class: "controls" },
            labelled("Name of the model", field),
            h("button", {}, "Show"),
            name && link("/ui/plans", "All plans"),
          ),
        ),
        list,
      ),
    ],
  };
}

async function load(name, token) {
  const page = await get(withQuery("/v1/plans", { page_size: 50, page_token: token, name }));
  return { rows: page.plans, next: page.next_page_token };
}

/** The ranks of a job, and those of a sharding group where it has several: "128 in groups of 16". */
function ranksText({ world_size: ofPlan, job_world_size: ofJob }) {
  return ofPlan === ofJob ? format.count(ofJob) : `${format.count(ofJob)} in groups of ${format.count(ofPlan)}`;
}

/** A table of plans. */
function planTable(plans) {
  return table(
    "Plans, newest first",
    [
      {
        title: "Name",
        head: true,
        wide: true,
        cell: (plan) =>
          link(`/ui/plans/${segment(plan.plan_digest)}`, plan.name || format.shortDigest(plan.plan_digest)),
      },
      { title: "Objective", number: true, cell: (plan) => format.seconds(plan.objective.seconds) },
      { title: "Gap", number: true, cell: (plan) => format.gap(plan.objective.relative_gap) },
      { title: "Ranks", number: true, cell: (plan) => ranksText(plan) },
      { title: "Hardware", cell: (plan) => plan.hardware_profile },
      { title: "Priced by", cell: (plan) => plan.cost_model },
      { title: "Made", cell: (plan) => time(plan.created_at) },
    ],
    plans,
    { empty: "No plans yet.", stacks: true },
  );
}

/** The newest plans as a section of another page. */
export async function newestPlans(number) {
  const { plans } = await get(`/v1/plans?page_size=${number}`);
  return section("Newest plans", planTable(plans), plans.length > 0 && h("p", {}, link("/ui/plans", "All plans")));
}
