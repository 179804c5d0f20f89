/** One hardware profile: its numbers, how well each is known, and who says so. */

import { get, getOrNull } from "../api.js";
import { curveChart } from "../charts/curves.js";
import { breakable, h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { evidence, keyFigures, pageHead, section, table, time } from "../parts.js";

const KEY_NUMBERS = [
  ["hbm_bytes", "Memory of a rank"],
  ["hbm_bytes_per_second", "Its bandwidth"],
  ["ddr_bytes", "Host memory of a rank"],
  ["intra_host_bytes_per_second", "Within a host"],
  ["inter_host_bytes_per_second", "Between hosts"],
];

/** The page of a profile, by id. */
export async function profilePage(id) {
  const address = `/v1/hardware-profiles/${segment(id)}`;
  const [profile, active] = await Promise.all([get(address), getOrNull(`${address}/cost-model`)]);
  const curves = Object.entries(profile.intra_host_curves);
  return {
    title: `${profile.id}: hardware`,
    content: [
      pageHead(profile.id, {
        trail: [["/ui/hardware-profiles", "Hardware"]],
        kicker: `${profile.description}. ${format.counted(profile.ranks_per_host, "rank")} on a host.`,
        actions: [link(address, "JSON")],
      }),
      keyFigures(
        KEY_NUMBERS.filter(([name]) => profile.numbers[name]).map(([name, label]) => {
          const number = profile.numbers[name];
          return [label, format.quantity(number.value, number.unit), number.evidence];
        }),
      ),
      section(
        "Numbers",
        h("p", {}, "All are per rank. Measured is strongest, estimated weakest."),
        numberTable(profile.numbers),
      ),
      curves.length > 0 && section("Collectives", curveChart(curves).element),
      section("Learned cost model", activation(active)),
    ],
  };
}

function numberTable(numbers) {
  return table(
    "Numbers of the profile",
    [
      { title: "Number", head: true, cell: ([name]) => h("code", {}, breakable(name)) },
      { title: "Value", number: true, cell: ([, number]) => format.quantity(number.value, number.unit) },
      { title: "Evidence", cell: ([, number]) => evidence(number.evidence) },
      {
        title: "Source",
        wide: true,
        cell: ([, number]) => [number.source, number.note && h("span", { class: "hint" }, number.note)],
      },
    ],
    Object.entries(numbers),
  );
}

function activation(active) {
  if (active === null)
    return h(
      "p",
      { class: "empty" },
      "None is active: learned in a spec means the one that comes with shardplan, where there is one.",
    );
  return [
    h(
      "p",
      {},
      "A spec that says learned gets ",
      link(`/ui/cost-models/${segment(active.cost_model)}`, active.cost_model),
      ` (version ${active.version} of this choice, since `,
      time(active.updated_at),
      ").",
    ),
    table(
      "What was active, newest first",
      [
        { title: "Version", head: true, cell: (version) => version.version },
        {
          title: "Model",
          cell: (version) => link(`/ui/cost-models/${segment(version.cost_model)}`, version.cost_model),
        },
        { title: "Since", cell: (version) => time(version.updated_at) },
      ],
      [...active.history].reverse(),
    ),
  ];
}
