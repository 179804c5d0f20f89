/** The ordered objectives of a plan: what each came to, what bounds it, and the plans that its searches found. */

import { h } from "../dom.js";
import * as format from "../format.js";
import { section, table } from "../parts.js";

/** The section; null for a plan that was made for one objective. */
export function objectivesSection(plan) {
  const listed = plan.objectives;
  if (!listed?.length) return null;
  const limits = Object.assign({}, ...listed.map((one) => one.limits));
  const number = (title, of) => ({ title, number: true, cell: (one) => valueText(one.unit, of(one)) });
  return section(
    "Ordered objectives",
    h(
      "p",
      {},
      "Each was made small while those before it became worse by no more than it tolerates. “At least” bounds every ",
      "plan that keeps these limits; “at most” is what the objectives after may worsen a value to.",
    ),
    table(
      "Ordered objectives",
      [
        { title: "Objective", head: true, cell: (one) => one.name },
        number("Value", (one) => one.value),
        number("At least", (one) => one.lower_bound),
        number("At most", (one) => limits[one.name]),
        number("Before its turn", (one) => one.value_before),
      ],
      listed,
    ),
    listed.map((one) => foundPlans(listed, one)),
  );
}

/** The plans that the searches of one objective found: between them the tolerance chose. */
function foundPlans(listed, one) {
  const found = one.points.map((point) => point.values).filter(Boolean);
  if (found.length < 2) return null;
  found.sort((first, second) => first[one.name] - second[one.name]);
  const columns = listed.map(({ name, unit }) => ({
    title: name,
    number: true,
    cell: (values) => valueText(unit, values[name]),
  }));
  return [h("h3", {}, `Plans found for ${one.name}`), table(`Plans found for ${one.name}`, columns, found)];
}

function valueText(unit, value) {
  if (value == null) return "–";
  return unit === "share" ? format.share(value) : format.quantity(value, unit);
}
