/** The list of studies. */

import { get, withQuery } from "../api.js";
import { h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { pageHead, pages, state, table, time } from "../parts.js";

/** The page. */
export async function studiesPage() {
  const list = await pages((token) => load(token), studyTable);
  return {
    title: "Studies",
    content: [
      pageHead("Studies", { kicker: "A study is a question that takes many plans. Newest first." }),
      h("section", { "aria-label": "Studies" }, list),
    ],
  };
}

async function load(token) {
  const page = await get(withQuery("/v1/studies", { page_size: 50, page_token: token }));
  return { rows: page.studies, next: page.next_page_token };
}

function studyTable(studies) {
  return table(
    "Studies, newest first",
    [
      {
        title: "Name",
        head: true,
        wide: true,
        cell: (study) => link(`/ui/studies/${segment(study.id)}`, study.name),
      },
      { title: "Kind", cell: (study) => format.words(study.kind) },
      { title: "State", cell: (study) => state(study.state) },
      { title: "Points", number: true, cell: ({ progress }) => `${progress.num_ended} of ${progress.num_points}` },
      { title: "Asked for", cell: (study) => time(study.created_at) },
    ],
    studies,
    { empty: "No studies yet: POST /v1/studies or shardplan study asks for one.", stacks: true },
  );
}
