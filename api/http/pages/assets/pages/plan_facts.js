/** What several pages say of a plan. */

import { getOrNull, withQuery } from "../api.js";
import * as format from "../format.js";

/** Why a search ended, in words. */
export function reason(termination) {
  const ended =
    {
      OPTIMAL: "proven best within the gap asked for",
      FEASIBLE: "a plan that keeps all rules",
      INFEASIBLE: "no plan exists",
      NO_SOLUTION_FOUND: "no plan was found",
    }[termination.reason] ?? termination.reason;
  return termination.limit ? `${ended}; ended by ${format.words(termination.limit)}` : ended;
}

/** The entry of a plan in the list of plans, which knows its solve; null where it is not listed. */
export async function listedPlan(plan) {
  let token = null;
  do {
    const page = await getOrNull(withQuery("/v1/plans", { name: plan.name, page_size: 500, page_token: token }));
    const found = page?.plans.find((entry) => entry.plan_digest === plan.plan_digest);
    if (found) return found;
    token = page?.next_page_token ?? null;
  } while (token !== null);
  return null;
}
