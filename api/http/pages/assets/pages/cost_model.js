/** One cost model: what it counts, and how it did on rows that were held out of its fit. */

import { get } from "../api.js";
import { h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { digest, facts, keyFigures, pageHead, section, state, table, time } from "../parts.js";
import { heldOut } from "./cost_models.js";

/** The page of a cost model, by id. */
export async function costModelPage(id) {
  const model = await get(`/v1/cost-models/${segment(id)}`);
  return {
    title: `${model.id}: cost model`,
    content: [
      pageHead(model.id, {
        trail: [["/ui/cost-models", "Cost models"]],
        kicker: [`${model.kind === "learned" ? "Learned from measurements" : "Formulas"}. `, state(model.state)],
        actions: [
          model.report_url && link(`/v1/cost-models/${segment(model.id)}/report`, "The whole report"),
          link(`/v1/cost-models/${segment(model.id)}`, "JSON"),
        ].filter(Boolean),
      }),
      model.error &&
        h(
          "div",
          { class: "problem", role: "alert" },
          h("h2", {}, "The fit failed"),
          h("p", {}, model.error.message),
          model.error.hint && h("p", {}, model.error.hint),
        ),
      figures(model),
      section(
        "What it is",
        facts([
          ["cost_model of a spec", h("code", {}, model.reference)],
          ["Version", model.version],
          model.device && ["Fitted for", model.device],
          model.digest && ["Digest", digest(model.digest)],
          ["Phases it counts", model.counted_phases.map(format.words).join(", ")],
          model.measurements && [
            "Fitted to",
            format.counted(model.measurements.length, "batch", "batches") + " of measurements",
          ],
          model.created_at && ["Asked for", time(model.created_at)],
          model.ended_at && ["Ended", time(model.ended_at)],
        ]),
      ),
      model.figures && model.figures.groups.length > 0 && heldOutSection(model.figures),
    ],
  };
}

function figures(model) {
  const entries = ["lookup", "collective"].map((kind) => [kind, heldOut(model, kind)]).filter(([, group]) => group);
  if (entries.length === 0) return null;
  return keyFigures(
    entries.flatMap(([kind, group]) => [
      group.mean_relative_error !== null && [
        `Mean error of ${kind}s`,
        format.share(group.mean_relative_error),
        `of ${format.counted(group.num_rows, "row")} held out`,
      ],
      group.coverage !== null && [
        `Coverage of ${kind}s`,
        format.wholeShare(group.coverage),
        "of these rows lie within their interval",
      ],
    ]),
  );
}

function heldOutSection(told) {
  const kinds = [...new Set(told.groups.map((group) => group.kind))];
  const share = (value) => (value === null ? "" : format.share(value));
  return section(
    "Held-out rows",
    h("p", {}, `Rows that the fit did not see${told.split ? `, held out ${told.split}` : ""}.`),
    table(
      "How the model does on rows that were held out",
      [
        { title: "Rows", head: true, cell: (group) => `${group.by === "all" ? "all" : `${group.by}: ${group.group}`}` },
        { title: "Number", number: true, cell: (group) => format.count(group.num_rows) },
        { title: "Mean error", number: true, cell: (group) => share(group.mean_relative_error) },
        { title: "Median error", number: true, cell: (group) => share(group.median_relative_error) },
        {
          title: "Rank correlation",
          number: true,
          cell: (group) => (group.rank_correlation === null ? "" : format.digits(group.rank_correlation)),
        },
        {
          title: "Coverage",
          number: true,
          cell: (group) => (group.coverage === null ? "" : format.wholeShare(group.coverage)),
        },
      ],
      told.groups,
      {
        bodies: kinds.map((kind) => [
          `${kind}s`.replace("copys", "copies"),
          told.groups.filter((group) => group.kind === kind),
        ]),
      },
    ),
  );
}
