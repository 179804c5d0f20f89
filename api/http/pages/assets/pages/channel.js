/** One channel: where it points, where it pointed, and the way back. */

import { get, request, withQuery } from "../api.js";
import { may } from "../caller.js";
import { channelPath, fill, h, link, segment } from "../dom.js";
import * as format from "../format.js";
import {
  button,
  facts,
  keyFigures,
  labelled,
  pageHead,
  pages,
  planLink,
  problemPanel,
  section,
  table,
  time,
} from "../parts.js";
import { groupsText } from "./plan_groups.js";
import { pointChannel } from "./plan_use.js";

/** The page of a channel, by name. */
export async function channelPage(name) {
  const address = `/v1/channels/${channelPath(name)}`;
  const { document: channel, etag } = await request(address);
  const [plan, mayPromote] = await Promise.all([get(channel.plan_url), may("promote")]);
  const status = h("div", { role: "status" });
  const act = async (work) => {
    try {
      await work();
      location.reload();
    } catch (problem) {
      fill(status, problemPanel(problem));
    }
  };
  const rollBack = (version) => {
    if (!confirm(`Point ${name} at the plan of version ${version} again?`)) return;
    act(() => request(`${address}:rollback`, { method: "POST", body: { version }, headers: { "If-Match": etag } }));
  };
  const history = await pages(
    async (token) => {
      const page = await get(withQuery(`${address}/history`, { page_size: 50, page_token: token }));
      return { rows: page.versions, next: page.next_page_token };
    },
    (versions) => historyTable(versions, channel, mayPromote ? rollBack : null),
  );
  return {
    title: `${name}: channel`,
    content: [
      pageHead(name, {
        trail: [["/ui/channels", "Channels"]],
        kicker: ["Version ", channel.version, ", changed ", time(channel.updated_at)],
        actions: [link(`${address}/plan`, "What launchers read")],
      }),
      status,
      keyFigures([
        ["Objective", format.seconds(plan.objective.seconds), format.words(plan.objective.name)],
        ["Gap", format.gap(plan.objective.relative_gap)],
        [
          "Ranks",
          plan.replica_groups ? groupsText(plan.replica_groups) : format.count(plan.world_size),
          plan.provenance.hardware_profile,
        ],
      ]),
      section(
        "The plan",
        facts([
          ["Name", plan.name || "none"],
          ["Digest", planLink(channel.plan_digest)],
          ...Object.entries(channel.plan_digests).map(([size, digest]) => [`For ${size} ranks`, planLink(digest)]),
          [
            "Fetched by launchers with",
            h("code", {}, `shardplan fetch ${name} -o plan.json --server ${location.origin}`),
          ],
        ]),
        mayPromote && pointForm(name, act),
      ),
      section("History", h("p", {}, "Newest first; every change is kept."), history),
    ],
  };
}

function historyTable(versions, channel, rollBack) {
  return table(
    "Versions, newest first",
    [
      { title: "Version", head: true, cell: (version) => version.version },
      { title: "Plan", cell: (version) => planLink(version.plan_digest) },
      { title: "Since", cell: (version) => time(version.updated_at) },
      {
        title: "Against now",
        cell: (version) =>
          version.plan_digest === channel.plan_digest
            ? "the same plan"
            : link(`/ui/plans/${segment(version.plan_digest)}/diff/${segment(channel.plan_digest)}`, "compare"),
      },
      { title: "How", wide: true, cell: howMade },
      rollBack !== null && {
        title: "Go back",
        cell: (version) =>
          version.version === channel.version
            ? "points here now"
            : button(`Roll back to version ${version.version}`, () => rollBack(version.version)),
      },
    ].filter(Boolean),
    versions,
  );
}

/** Who made a version, and how; of old ones that is not written down. */
function howMade({ who, action, restored_version: restored }) {
  if (action === null) return "not written down";
  const did = action === "channel.rollback" ? "rolled back" : "promoted";
  return `${did}${restored === null ? "" : ` to version ${restored}`} by ${who}`;
}

function pointForm(name, act) {
  const plan = h("input", {
    required: true,
    placeholder: "sha256:…",
    autocomplete: "off",
    spellcheck: "false",
    size: 30,
  });
  const submit = (event) => {
    event.preventDefault();
    act(() => pointChannel(name, plan.value.trim()));
  };
  return h(
    "form",
    { submit },
    h("div", { class: "controls" }, labelled("Point it at another plan", plan), h("button", {}, "Point it there")),
  );
}
