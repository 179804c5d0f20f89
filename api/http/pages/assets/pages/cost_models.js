/** The list of cost models. */

import { get, withQuery } from "../api.js";
import { h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { pageHead, pages, state, table } from "../parts.js";

/** The page. */
export async function costModelsPage() {
  const list = await pages(load, modelTable);
  return {
    title: "Cost models",
    content: [
      pageHead("Cost models", {
        kicker: "What turns bytes into seconds: formulas, and models learned from measurements.",
      }),
      h("section", { "aria-label": "Cost models" }, list),
    ],
  };
}

async function load(token) {
  const page = await get(withQuery("/v1/cost-models", { page_size: 100, page_token: token }));
  return { rows: page.cost_models, next: page.next_page_token };
}

/** How a learned model did on all rows of a kind that were held out; null if it is not known. */
export function heldOut(model, kind) {
  return model.figures?.groups.find((group) => group.kind === kind && group.by === "all") ?? null;
}

function meanError(model, kind) {
  const figures = heldOut(model, kind);
  return figures === null || figures.mean_relative_error === null ? "" : format.share(figures.mean_relative_error);
}

function modelTable(models) {
  return table(
    "Cost models",
    [
      { title: "Model", head: true, cell: (model) => link(`/ui/cost-models/${segment(model.id)}`, model.id) },
      { title: "Kind", cell: (model) => model.kind },
      { title: "State", cell: (model) => state(model.state) },
      { title: "Device", wide: true, cell: (model) => model.device ?? "any with numbers" },
      { title: "Error of lookups", number: true, cell: (model) => meanError(model, "lookup") },
      { title: "Error of collectives", number: true, cell: (model) => meanError(model, "collective") },
    ],
    models,
  );
}
