/** The list of channels. */

import { get, withQuery } from "../api.js";
import { channelPath, fill, h, link } from "../dom.js";
import { labelled, pageHead, pages, planLink, problemPanel, section, table, time } from "../parts.js";
import { pointChannel } from "./plan_use.js";

/** The page. */
export async function channelsPage() {
  const list = await pages(load, channelTable);
  return {
    title: "Channels",
    content: [
      pageHead("Channels", { kicker: "A channel is a name that points at a plan; launchers follow it." }),
      h("section", { "aria-label": "Channels" }, list),
      newChannel(),
    ],
  };
}

async function load(token) {
  const page = await get(withQuery("/v1/channels", { page_size: 100, page_token: token }));
  return { rows: page.channels, next: page.next_page_token };
}

/** A table of channels. */
function channelTable(channels) {
  return table(
    "Channels by name",
    [
      {
        title: "Name",
        head: true,
        wide: true,
        cell: (channel) => link(`/ui/channels/${channelPath(channel.name)}`, channel.name),
      },
      { title: "Version", number: true, cell: (channel) => channel.version },
      { title: "Plan", cell: (channel) => planLink(channel.plan_digest) },
      { title: "Changed", cell: (channel) => time(channel.updated_at) },
    ],
    channels,
    { empty: "No channels yet. The page of a plan can point one at it.", stacks: true },
  );
}

function newChannel() {
  const name = h("input", { required: true, placeholder: "ads/ranker/prod", autocomplete: "off", spellcheck: "false" });
  const plan = h("input", {
    required: true,
    placeholder: "sha256:…",
    autocomplete: "off",
    spellcheck: "false",
    size: 30,
  });
  const status = h("div", { role: "status" });
  async function point(event) {
    event.preventDefault();
    try {
      const channel = await pointChannel(name.value.trim(), plan.value.trim());
      location.assign(`/ui/channels/${channelPath(channel.name)}`);
    } catch (problem) {
      fill(status, problemPanel(problem));
    }
  }
  return section(
    "Point a channel at a plan",
    h(
      "form",
      { submit: point },
      h(
        "div",
        { class: "controls" },
        labelled("Channel", name),
        labelled("Digest of the plan", plan),
        h("button", {}, "Point it there"),
      ),
      status,
    ),
  );
}

/** The first channels as a section of another page. */
export async function someChannels(number) {
  const { channels } = await get(`/v1/channels?page_size=${number}`);
  return section(
    "Channels",
    channelTable(channels),
    channels.length > 0 && h("p", {}, link("/ui/channels", "All channels")),
  );
}
