/** Sharding groups of a plan, what keeps them alike, and how other sizes compare. */

import { h } from "../dom.js";
import * as format from "../format.js";
import { facts, section, table } from "../parts.js";

const STATES = { ruled_out: "cannot win", infeasible: "has no plan", not_searched: "not searched" };

/** "128 ranks in 8 groups of 16". */
export function groupsText(groups) {
  const number = format.counted(groups.num_groups, "group");
  return `${format.counted(groups.world_size, "rank")} in ${number} of ${groups.sharding_group_size}`;
}

/** The section about the groups of a plan. */
export function replicaGroupsSection({ replica_groups: groups, replica_sync: sync, ranks_per_host: onHost, ...plan }) {
  const hosts = groups.sharding_group_size / onHost;
  const pods = plan.pod_size ? `, ${plan.pod_size} in each pod` : "";
  const each = groups.use_inter_host_allreduce ? "contiguous ranks" : `one of every ${groups.num_groups} ranks`;
  const what = groups.include_optimizer_state ? "weights and optimizer state" : "weights";
  return section(
    "Sharding groups",
    groups.num_groups === 1
      ? h("p", {}, "One group of all ranks: nothing is averaged.")
      : h("p", {}, "Each group holds every table under this plan; ranks are numbered within a group."),
    groups.num_groups > 1 &&
      facts([
        ["Groups", groupsText(groups)],
        ["A group has", `${each}, ${onHost} on each of ${format.counted(hosts, "host")}${pods}`],
        ["Averages", `${what}, every ${format.counted(groups.sync_interval_steps, "step")}`],
        ["Each takes", `${format.seconds(sync.seconds)} for ${format.bytes(sync.bytes)} on the fullest rank`],
        ["Per step", format.seconds(sync.seconds_per_step)],
      ]),
    sync.sizes.length > 0 && sizesTable(sync.sizes, groups.sharding_group_size),
  );
}

function sizesTable(sizes, chosen) {
  const seconds = (value) => (value === null ? "–" : format.seconds(value));
  return table(
    "Sizes of sharding groups",
    [
      { title: "Ranks", head: true, number: true, cell: (size) => format.count(size.sharding_group_size) },
      { title: "Groups", number: true, cell: (size) => format.count(size.num_groups) },
      { title: "Objective", number: true, cell: (size) => seconds(size.objective_seconds) },
      { title: "Lower bound", number: true, cell: (size) => format.bound(size.lower_bound_seconds) },
      { title: "Averages per step", number: true, cell: (size) => seconds(size.sync_seconds_per_step) },
      {
        title: "",
        cell: (size) => (size.sharding_group_size === chosen ? "chosen" : (STATES[size.state] ?? "")),
      },
    ],
    sizes,
  );
}
