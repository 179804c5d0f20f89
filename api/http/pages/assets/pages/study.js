/** One study: its points, what they are worth, and what it found. */

import { get, request } from "../api.js";
import { may } from "../caller.js";
import { figureName, figureText, frontChart } from "../charts/front.js";
import { fill, h, link, segment } from "../dom.js";
import * as format from "../format.js";
import { button, facts, issueList, keyFigures, pageHead, planLink, problemPanel, section, state, table, time } from "../parts.js";

const POLL_SECONDS = 2;
/** Figures that every study shows, as far as its points have them. */
const SHOWN = ["step_seconds", "samples_per_second", "requests_per_second", "num_hosts", "price_per_hour"];

/** The page of a study, by id. */
export async function studyPage(studyId) {
  const address = `/v1/studies/${segment(studyId)}`;
  const [study, mayChange] = await Promise.all([get(address), may("solve")]);
  const head = h("div", {});
  const figures = h("div", {});
  const found = h("div", {});
  const spoken = h("p", { class: "spoken", role: "status", "aria-live": "polite" });
  let now = study;

  async function draw() {
    const points = inGridOrder((await get(`${address}/points`)).points);
    const front = now.kind === "sweep" ? await get(`${address}/front`) : null;
    fill(head, studyHead(now, mayChange && isOpen(now) ? stop : null));
    fill(figures, studyFigures(now, points));
    fill(found, [now.error && failure(now.error), ...answerOf(now, points, front)]);
  }

  async function stop() {
    try {
      now = (await request(`${address}:cancel`, { method: "POST" })).document;
      await draw();
    } catch (problem) {
      fill(found, problemPanel(problem));
    }
  }

  async function follow() {
    try {
      while (isOpen(now)) {
        const before = now.progress.num_ended;
        now = await get(`${address}?wait=${POLL_SECONDS}`);
        if (now.progress.num_ended !== before || !isOpen(now)) await draw();
      }
      fill(spoken, `The study is over: ${now.state}.`);
    } catch (problem) {
      fill(found, problemPanel(problem));
    }
  }

  await draw();
  if (isOpen(now)) follow();
  return { title: `${study.name}: study`, content: [head, figures, spoken, found, aboutSection(study)] };
}

const isOpen = (study) => study.state === "queued" || study.state === "running";

function studyHead(study, stop) {
  return pageHead(study.name, {
    trail: [["/ui/studies", "Studies"]],
    kicker: [
      h("span", { class: isOpen(study) ? "live" : null }, state(study.state)),
      ` ${format.words(study.kind)}, asked for `,
      time(study.created_at),
    ],
    actions: [
      stop && button("Stop, and keep the plans", stop),
      link(`/v1/studies/${segment(study.id)}`, "JSON"),
      link(`/v1/studies/${segment(study.id)}/points`, "Points as JSON"),
    ].filter(Boolean),
  });
}

function studyFigures(study, points) {
  const numPlans = points.filter((point) => point.plan_digest).length;
  return keyFigures([
    ["Points", format.count(study.progress.num_points), `${format.count(study.progress.num_ended)} have ended`],
    ["With a plan", format.count(numPlans)],
  ]);
}

function failure(error) {
  return h("div", { class: "problem", role: "alert" }, h("h2", {}, "It failed"), h("p", {}, error.message));
}

/** What the study found so far: of a sweep its front, and of every study its points. */
function answerOf(study, points, front) {
  const standings = new Map((front?.points ?? []).map((one) => [one.key, one.standing]));
  const names = front?.figures ?? [];
  const placed = points.filter((point) => standings.has(point.key));
  const shown = [...new Set([...names, ...SHOWN])].filter((name) => points.some((point) => known(point, name)));
  const all = () => pointTable(points, shown, standings);
  const parts = [];
  if (placed.length > 0) {
    const drawn = frontChart(names, placed, standings, () => pointTable(placed, names, standings), (point) =>
      location.assign(`/ui/plans/${segment(point.plan_digest)}`),
    );
    parts.push(section("Front", drawn.element));
  }
  if (study.answer && !front) parts.push(section("Answer", answerFacts(study.answer)));
  parts.push(section("Points", all(), withoutPlan(points)));
  return parts;
}

/** Words as the title of a column. */
const titled = (words) => format.sentence(words).slice(0, -1);

/** Points by the values of their axes, those of the first axis together; values in the order in which they came. */
function inGridOrder(points) {
  const seen = new Map();
  for (const { labels } of points)
    for (const [name, label] of Object.entries(labels)) {
      if (!seen.has(name)) seen.set(name, new Map());
      if (!seen.get(name).has(label)) seen.get(name).set(label, seen.get(name).size);
    }
  const place = ({ labels }) => Object.entries(labels).map(([name, label]) => seen.get(name).get(label));
  return points.toSorted((a, b) => {
    const [first, second] = [place(a), place(b)];
    const at = first.findIndex((value, index) => value !== second[index]);
    return at < 0 ? 0 : first[at] - second[at];
  });
}

const known = (point, name) => point.figures?.[name] !== null && point.figures?.[name] !== undefined;

function pointTable(points, names, standings) {
  return table(
    "Points of the study",
    [
      { title: "Point", head: true, wide: true, cell: (point) => point.key },
      ...names.map((name) => ({
        title: titled(figureName(name)),
        number: true,
        cell: (point) => (known(point, name) ? figureText(name, point.figures[name]) : ""),
      })),
      { title: "Gap", number: true, cell: (point) => (point.plan_digest ? format.gap(point.relative_gap) : "") },
      ...(standings.size > 0 ? [{ title: "Front", cell: (point) => standings.get(point.key) ?? "" }] : []),
      {
        title: "Plan",
        cell: (point) => (point.plan_digest ? planLink(point.plan_digest) : state(format.words(point.state))),
      },
    ],
    points,
    { empty: "No points yet.", stacks: true },
  );
}

/** Why points have no plan. */
function withoutPlan(points) {
  const issues = points.flatMap((point) =>
    (point.issues ?? []).slice(0, 1).map((issue) => ({ ...issue, message: `${point.key}: ${issue.message}` })),
  );
  return issueList(issues);
}

/** An answer that has no chart: its members by name, and those of lists one after the other. */
function answerFacts(answer) {
  const parts = [];
  const plain = Object.entries(answer).filter(([, value]) => value === null || typeof value !== "object");
  if (plain.length > 0) parts.push(facts(plain.map(([name, value]) => [titled(format.words(name)), plainText(value)])));
  for (const [name, value] of Object.entries(answer)) {
    if (Array.isArray(value) && value.every((one) => typeof one === "object" && one !== null)) {
      parts.push(entryTable(name, value));
    } else if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      parts.push(h("h3", {}, titled(format.words(name))), answerFacts(value));
    }
  }
  return parts;
}

function entryTable(name, entries) {
  const columns = [...new Set(entries.flatMap((entry) => Object.keys(entry)))].filter((key) =>
    entries.some((entry) => entry[key] === null || typeof entry[key] !== "object"),
  );
  const used = columns.filter((key) => entries.some((entry) => entry[key] !== null && entry[key] !== undefined));
  return table(
    titled(format.words(name)),
    used.map((key, index) => ({
      title: titled(format.words(key)),
      head: index === 0,
      number: entries.every((entry) => typeof entry[key] === "number" || entry[key] === null),
      cell: (entry) => (key === "plan_digest" && entry[key] ? planLink(entry[key]) : plainText(entry[key])),
    })),
    entries,
    { stacks: true, hideCaption: false },
  );
}

function plainText(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return Number.isInteger(value) ? format.count(value) : format.digits(value);
  return String(value);
}

function aboutSection(study) {
  return section(
    "About this study",
    facts([
      ["Id", h("code", {}, study.id)],
      ["Asked for", time(study.created_at)],
      study.started_at && ["Started", time(study.started_at)],
      study.ended_at && ["Ended", time(study.ended_at)],
    ]),
  );
}
