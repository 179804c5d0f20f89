/** Progress of a solve as the server tells it (server-sent events). */

import { segment } from "./dom.js";

/** Failures in a row, of connections that told nothing, after which nobody waits any longer. */
const MOST_FAILURES = 5;

/**
 * Follow a solve to its end.
 *
 * `state` gets {state, started_at} while the solve has not ended, `progress` every event, those before this call too,
 * and `ended` the solve. After a broken connection the browser connects again by itself and goes on where it was;
 * `gone` is called where the server has no events for us.
 */
export function followSolve(solveId, { state = () => {}, progress, ended, gone }) {
  const source = new EventSource(`/v1/solves/${segment(solveId)}/events`);
  let failures = 0;
  const hear = (name, tell) =>
    source.addEventListener(name, (event) => {
      failures = 0;
      tell(JSON.parse(event.data));
    });
  hear("state", state);
  hear("progress", progress);
  hear("end", (solve) => {
    source.close();
    ended(solve);
  });
  source.addEventListener("error", () => {
    failures += 1;
    if (source.readyState === EventSource.CLOSED || failures >= MOST_FAILURES) {
      source.close();
      gone();
    }
  });
}
