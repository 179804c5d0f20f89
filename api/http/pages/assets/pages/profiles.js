/** The list of hardware profiles. */

import { get } from "../api.js";
import { h, link, segment } from "../dom.js";
import { pageHead, table } from "../parts.js";

/** The page. */
export async function profilesPage() {
  const { profiles } = await get("/v1/hardware-profiles");
  return {
    title: "Hardware",
    content: [
      pageHead("Hardware", {
        kicker: "Profiles that hardware.profile of a spec can name; every number has its evidence and its source.",
      }),
      h(
        "section",
        { "aria-label": "Hardware profiles" },
        table(
          "Hardware profiles",
          [
            {
              title: "Profile",
              head: true,
              cell: (profile) => link(`/ui/hardware-profiles/${segment(profile.id)}`, profile.id),
            },
            { title: "Family", cell: (profile) => profile.family },
            { title: "Ranks of a host", number: true, cell: (profile) => profile.ranks_per_host },
            { title: "What it is", wide: true, cell: (profile) => profile.description },
          ],
          profiles,
        ),
      ),
    ],
  };
}
