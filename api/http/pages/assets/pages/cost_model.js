/** One cost model: what it counts, and how well it did on the whole; its report has the groups of held-out rows. */

import { get } from "../api.js";
import { h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { digest, facts, keyFigures, pageHead, section, state, time } from "../parts.js";
import { heldOut } from "./cost_models.js";

/** The page of a cost model, by id. */
export async function costModelPage(id) {
  const model = await get(`/v1/cost-models/${segment(id)}`);
  const report = `/v1/cost-models/${segment(model.id)}/report`;
  return {
    title: `${model.id}: cost model`,
    content: [
      pageHead(model.id, {
        trail: [["/ui/cost-models", "Cost models"]],
        kicker: [`${model.kind === "learned" ? "Learned from measurements" : "Formulas"}. `, state(model.state)],
        actions: [
          model.report_url && link(report, "The whole report"),
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
      model.report_url &&
        section(
          "Held-out rows",
          h("p", {}, "How it did on rows that its fit did not see, by size and by ranks, stands in ", link(report, "the report"), "."),
        ),
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
