/** What the gap of a plan consists of, and what a longer solve would do. */

import * as format from "../format.js";
import { facts } from "../parts.js";

/** The parts as names and values; null for a plan that is proven best, or whose bound is another model's. */
export function gapParts(plan) {
  const parts = plan.gap_parts;
  if (!parts || plan.termination.reason === "OPTIMAL") return null;
  const total = parts.balance_seconds + parts.packing_seconds + parts.choice_seconds;
  if (total <= 0) return null;
  const part = (seconds, reason) =>
    seconds > 0 && `${format.seconds(seconds)}, ${format.wholeShare(seconds / total)} of the gap: ${reason}`;
  const late = plan.provenance.late_gain_seconds;
  return facts(
    [
      ["Balance", part(parts.balance_seconds, "the most that other ranks for the same shards can gain")],
      ["Packing", part(parts.packing_seconds, "lost because the shards do not divide evenly among ranks")],
      ["Choice", part(parts.choice_seconds, "the shards cost more than the mix of shardings that the bound assumes")],
      ["Branching", parts.refuted_seconds > 0 && `raised the bound by ${format.seconds(parts.refuted_seconds)}`],
      ["A longer solve", parts.is_bound_final ? "cannot raise the bound" : "may raise the bound"],
      ["The second half", late != null && (late > 0 ? `gained ${format.seconds(late)}` : "gained less than 0.1%")],
    ].filter(([, value]) => value),
  );
}
