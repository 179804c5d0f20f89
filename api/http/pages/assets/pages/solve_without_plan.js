/** A solve that ended without a plan: what is short, what is in conflict, and what helps. */

import { h } from "../dom.js";
import * as format from "../format.js";
import { section } from "../parts.js";
import { reason } from "./plan_facts.js";

/** The section about a result without a plan. */
export function withoutPlan(result) {
  const { diagnosis } = result;
  return section(
    "There is no plan",
    h("p", {}, `${format.sentence(reason(result.termination))} ${format.sentence(result.termination.detail)}`),
    result.shortfalls.length > 0 && [
      h("h3", {}, "What is short"),
      h("ul", { class: "issues" }, result.shortfalls.map(shortfall)),
    ],
    diagnosis?.conflict && conflict(diagnosis.conflict),
    diagnosis &&
      diagnosis.fixes.length > 0 && [
        h("h3", {}, "What helps"),
        h("p", {}, "Each of these was made and solved; those that change least stand first."),
        h("ol", { class: "issues" }, diagnosis.fixes.map(fix)),
      ],
    diagnosis?.limit &&
      h(
        "p",
        { class: "note" },
        `The diagnosis was cut short by ${format.words(diagnosis.limit)}; a smaller fix may exist.`,
      ),
  );
}

function shortfall(one) {
  const size =
    one.required_bytes > 0 &&
    ` ${format.bytes(one.required_bytes)} needed, ${format.bytes(one.available_bytes)} there.`;
  return h("li", {}, format.sentence(one.message), size, one.hint && h("span", { class: "hint" }, one.hint));
}

function conflict(found) {
  return [
    h("h3", {}, "Constraints that leave no plan together"),
    h(
      "p",
      {},
      found.is_proven ? "This is proven." : "Short searches found none.",
      found.is_irreducible ? " Without any one of them there is a plan." : " Some may play no part.",
    ),
    h(
      "ul",
      { class: "issues" },
      found.constraints.map((one) => h("li", {}, h("code", {}, one.pointer), " ", one.message)),
    ),
  ];
}

function fix(one) {
  return h(
    "li",
    {},
    one.message,
    h(
      "span",
      { class: "hint" },
      `The plan then uses ${format.bytes(one.plan.used_bytes)} of ${format.bytes(one.plan.capacity_bytes)}, `,
      `${format.wholeShare(one.plan.fullest_rank_fraction)} on the fullest rank. `,
    ),
    h(
      "ul",
      {},
      one.changes.map((change) =>
        h(
          "li",
          {},
          h("code", {}, change.pointer),
          change.value === null ? " is left out" : [" becomes ", h("code", {}, JSON.stringify(change.value))],
        ),
      ),
    ),
  );
}
