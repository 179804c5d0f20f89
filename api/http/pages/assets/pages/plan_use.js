/** What can be done with a plan: fetch it, point a channel at it, compare it with another. */

import { get, Problem, request, save, withQuery } from "../api.js";
import { channelPath, fill, h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { labelled, problemPanel, section, select } from "../parts.js";

/** Runtimes that a plan is exported for: the name of the format, and their own. */
const FORMATS = [
  ["torchrec", "TorchRec"],
  ["torcheasyrec", "TorchEasyRec"],
  ["dynamicemb", "dynamicemb"],
  ["hugectr", "HugeCTR"],
  ["distributed_embeddings", "distributed-embeddings"],
  ["sparsecore", "SparseCore"],
];

/** The section of a plan; only who may promote is offered to point a channel at it. */
export function useSection(plan, mayPromote) {
  const address = `/v1/plans/${segment(plan.plan_digest)}`;
  const made = section(
    "Use it",
    h(
      "p",
      {},
      link(address, "The plan as JSON"),
      ". Launchers follow a channel.",
    ),
    exportForm(plan, address),
    mayPromote && channelForm(plan),
    compareForm(plan),
  );
  made.id = "use";
  return made;
}

function exportForm(plan, address) {
  let [chosen] = FORMATS[0];
  const choice = select(FORMATS, (value) => {
    chosen = value;
  });
  // Asked for only where the plan leaves it open.
  const isOpen = plan.tables.some((table) => !table.module_path);
  const path = h("input", { placeholder: "model.ebc", autocomplete: "off", spellcheck: "false" });
  const status = h("div", { role: "status" });
  async function write(event) {
    event.preventDefault();
    fill(status);
    try {
      await save(withQuery(`${address}/exports/${chosen}`, { module_path: path.value.trim() }));
    } catch (problem) {
      fill(status, problemPanel(problem));
    }
  }
  return h(
    "form",
    { submit: write },
    h(
      "div",
      { class: "controls" },
      labelled("Export for", choice),
      isOpen ? labelled("Module in the model", path) : null,
      h("button", {}, "Export"),
    ),
    status,
  );
}

function channelForm(plan) {
  const name = h("input", {
    required: true,
    placeholder: "ads/ranker/prod",
    autocomplete: "off",
    spellcheck: "false",
    pattern: "[a-z0-9._\\/\\-]+",
  });
  const status = h("div", { role: "status" });
  async function point(event) {
    event.preventDefault();
    try {
      const channel = await pointChannel(name.value, plan.plan_digest);
      fill(
        status,
        h(
          "p",
          {},
          link(`/ui/channels/${channelPath(channel.name)}`, channel.name),
          ` points here now (version ${channel.version}).`,
        ),
      );
    } catch (problem) {
      fill(status, problemPanel(problem));
    }
  }
  return h(
    "form",
    { submit: point },
    h("div", { class: "controls" }, labelled("Point a channel here", name), h("button", {}, "Point it here")),
    status,
  );
}

/** Point a channel, new or as it is now, at a plan. */
export async function pointChannel(name, planDigest) {
  const address = `/v1/channels/${channelPath(name)}`;
  let condition = { "If-None-Match": "*" };
  try {
    condition = { "If-Match": (await request(address)).etag };
  } catch (problem) {
    if (!(problem instanceof Problem && problem.status === 404)) throw problem;
  }
  return (await request(address, { method: "PUT", body: { plan_digest: planDigest }, headers: condition })).document;
}

function compareForm(plan) {
  const place = h("div", {});
  get("/v1/plans?page_size=50")
    .then(({ plans }) => {
      const others = plans.filter((entry) => entry.plan_digest !== plan.plan_digest);
      if (others.length === 0) return;
      const sameName = (entry) => (entry.name === plan.name ? 0 : 1);
      others.sort((a, b) => sameName(a) - sameName(b));
      let chosen = others[0].plan_digest;
      const choice = select(
        others.map((entry) => [
          entry.plan_digest,
          `${entry.name}, ${format.seconds(entry.objective.seconds)}, ${format.moment(entry.created_at)}`,
        ]),
        (value) => {
          chosen = value;
        },
      );
      const go = (event) => {
        event.preventDefault();
        location.assign(`/ui/plans/${segment(chosen)}/diff/${segment(plan.plan_digest)}`);
      };
      fill(
        place,
        h(
          "form",
          { submit: go },
          h("div", { class: "controls" }, labelled("Compare with", choice), h("button", {}, "Compare")),
        ),
      );
    })
    .catch(() => {}); // a list that cannot be had leaves the form out; the page is about this plan
  return place;
}
