/** One solve: how far it is while it runs, and what it came to. */

import { get, post, request } from "../api.js";
import { may } from "../caller.js";
import { gapChart } from "../charts/gap.js";
import { fill, h, link, segment } from "../dom.js";
import { followSolve } from "../events.js";
import * as format from "../format.js";
import {
  button,
  digest,
  facts,
  issueList,
  keyFigures,
  outcomeOf,
  pageHead,
  problemPanel,
  section,
  state,
  time,
} from "../parts.js";
import { reason } from "./plan_facts.js";
import { assumptionList } from "./plan_evidence.js";
import { solveSeconds } from "./plan_search.js";
import { withoutPlan } from "./solve_without_plan.js";

const SPOKEN_EVERY_MILLISECONDS = 5000;
const CLOCK_MILLISECONDS = 1000;
const POLL_SECONDS = 10;

/** The page of a solve, by id. */
export async function solvePage(solveId) {
  const address = `/v1/solves/${segment(solveId)}`;
  const [solve, mayChange] = await Promise.all([get(address), may("solve")]);
  const head = h("div", {});
  const figures = h("div", {});
  const outcome = h("div", {});
  const course = h("div", {});
  const search = section("Search", course);
  const spoken = h("p", { class: "spoken", role: "status", "aria-live": "polite" });
  const events = [];
  let chart = null;
  let spokenAt = 0;
  let now = solve;
  let isComplete = false; // whether all events were heard

  function draw() {
    fill(head, solveHead(now, mayChange ? { stop, retry } : null));
    fill(figures, solveFigures(now, events));
    fill(outcome, solveOutcome(now));
  }

  function speak(text, always = false) {
    if (always || Date.now() - spokenAt > SPOKEN_EVERY_MILLISECONDS) {
      spokenAt = Date.now();
      fill(spoken, text);
    }
  }

  function drawCourse() {
    if (events.length === 0) {
      search.hidden = isComplete;
      const wait = isOpen(now)
        ? h("p", { class: "empty" }, "No plan yet. The first one comes within seconds.")
        : h("p", { class: "loading" }, "Loading…");
      fill(course, isComplete ? null : wait);
      return;
    }
    if (chart === null) {
      chart = gapChart(events, () => solveSeconds(now) ?? runningSeconds(now));
      fill(course, chart.element);
    }
    chart.redraw();
  }

  async function stop() {
    try {
      now = (await request(`${address}:cancel`, { method: "POST" })).document;
      draw();
    } catch (problem) {
      fill(outcome, problemPanel(problem));
    }
  }

  followSolve(solveId, {
    state(change) {
      now = { ...now, ...change };
      draw();
    },
    progress(event) {
      events.push(event);
      fill(figures, solveFigures(now, events));
      drawCourse();
      if (isOpen(now))
        speak(
          `Best plan ${format.seconds(event.incumbent_seconds)}, bound ${format.bound(event.bound_seconds)}, ` +
            `gap ${format.gap(event.relative_gap)}.`,
        );
    },
    ended(ended) {
      const wasOpen = isOpen(now);
      isComplete = true;
      now = ended;
      draw();
      drawCourse();
      if (wasOpen) speak(`The solve is over: ${outcomeOf(now)}.`, true);
    },
    async gone() {
      try {
        while (isOpen(now)) {
          now = await get(`${address}?wait=${POLL_SECONDS}`);
          draw();
        }
        isComplete = true;
        drawCourse();
      } catch (problem) {
        fill(outcome, problemPanel(problem));
      }
    },
  });
  const clock = setInterval(() => {
    if (!isOpen(now)) clearInterval(clock);
    else fill(figures, solveFigures(now, events));
  }, CLOCK_MILLISECONDS);

  async function retry() {
    try {
      const again = (await request(`${address}:retry`, { method: "POST" })).document;
      location.assign(`/ui/solves/${segment(again.id)}`);
    } catch (problem) {
      fill(outcome, problemPanel(problem));
    }
  }

  draw();
  drawCourse();
  return {
    title: `${solve.name || solve.id}: solve`,
    content: [head, figures, spoken, outcome, search, aboutSection(solve)],
  };
}

const isOpen = (solve) => solve.state === "queued" || solve.state === "running";

function runningSeconds(solve) {
  return solve.started_at ? Math.max(0, (Date.now() - new Date(solve.started_at)) / 1000) : null;
}

function solveHead(solve, acts) {
  return pageHead(solve.name || "A solve", {
    trail: [["/ui/solves", "Solves"]],
    kicker: [
      h("span", { class: isOpen(solve) ? "live" : null }, state(outcomeOf(solve))),
      " asked for ",
      time(solve.created_at),
    ],
    actions: [
      solve.result?.plan_digest &&
        h("a", { class: "button", href: `/ui/plans/${segment(solve.result.plan_digest)}` }, "See the plan"),
      acts && isOpen(solve) && button("Stop, and keep the best plan", acts.stop),
      acts && (solve.state === "failed" || solve.state === "cancelled") && button("Try again", acts.retry),
      link(`/v1/solves/${segment(solve.id)}`, "JSON"),
    ].filter(Boolean),
  });
}

function solveFigures(solve, events) {
  const last = events.at(-1) ?? solve.progress;
  const best = solve.result?.objective?.seconds ?? last?.incumbent_seconds;
  const bound = solve.result ? solve.result.lower_bound_seconds : last?.bound_seconds;
  const gap = solve.result?.objective ? solve.result.objective.relative_gap : last?.relative_gap;
  const took = solveSeconds(solve) ?? runningSeconds(solve);
  const finder = solve.result?.partitioner ?? last?.partitioner;
  return keyFigures([
    solve.result &&
      !solve.result.plan_digest && [
        "Answer",
        solve.result.termination.reason === "INFEASIBLE" ? "No plan exists" : "No plan was found",
      ],
    best !== undefined && ["Best plan", format.seconds(best), finder && `by ${format.words(finder)}`],
    bound !== undefined && bound > 0 && ["Lower bound", format.seconds(bound), "no plan is better"],
    best !== undefined && ["Gap", format.gap(gap), solve.result && reason(solve.result.termination)],
    took !== null && [
      isOpen(solve) ? "Running for" : "Took",
      format.seconds(isOpen(solve) ? Math.floor(took) : took),
      null,
    ],
  ]);
}

function solveOutcome(solve) {
  if (solve.error) {
    return h(
      "div",
      { class: "problem", role: "alert" },
      h("h2", {}, "It failed"),
      h("p", {}, solve.error.message),
      solve.error.hint && h("p", {}, solve.error.hint),
    );
  }
  if (solve.result && !solve.result.plan_digest) return withoutPlan(solve.result);
  return null;
}

function aboutSection(solve) {
  return [
    solve.warnings.length > 0 && section("Warnings", issueList(solve.warnings)),
    section("What was assumed", assumptionList(solve.assumptions)),
    section(
      "About this solve",
      facts([
        ["Id", h("code", {}, solve.id)],
        ["Spec", digest(solve.spec_digest)],
        solve.tags.length > 0 && ["Tags", solve.tags.join(", ")],
        solve.priority !== 0 && ["Priority", solve.priority],
        solve.deadline && ["Deadline", time(solve.deadline)],
        ["Asked for", time(solve.created_at)],
        solve.started_at && ["Started", time(solve.started_at)],
        solve.ended_at && ["Ended", time(solve.ended_at)],
      ]),
    ),
  ];
}

/** Submit a spec, and return the solve. */
export function submit(spec) {
  return post("/v1/solves", spec);
}
