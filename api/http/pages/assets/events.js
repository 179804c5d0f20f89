/** Progress of a solve as the server sends it (server-sent events). */

import { segment } from "./dom.js";
import { keyHeaders } from "./key.js";

/** Failures in a row, of connections without any event, after which the page stops waiting. */
const MOST_FAILURES = 5;
const AGAIN_MILLISECONDS = 2000;

/**
 * Follow a solve to its end.
 *
 * `state` gets {state, started_at} while the solve has not ended, `progress` every event, those before this call too,
 * and `ended` the solve. After a broken connection it connects again and goes on where it was; `gone` is called where
 * the server has no events for us. Read with fetch, because an EventSource cannot show a key.
 */
export async function followSolve(solveId, { state = () => {}, progress, ended, gone }) {
  const handlers = { state, progress, end: ended };
  let lastId = null;
  for (let failures = 0; failures < MOST_FAILURES; failures += 1) {
    if (failures > 0) await new Promise((resolve) => setTimeout(resolve, AGAIN_MILLISECONDS));
    const headers = { ...keyHeaders(), ...(lastId === null ? {} : { "Last-Event-ID": lastId }) };
    const answer = await orNull(fetch(`/v1/solves/${segment(solveId)}/events`, { headers, cache: "no-store" }));
    if (answer === null || answer.status === 503) continue;
    if (!answer.ok) break;
    const events = eventsOf(answer.body);
    for (let next = await orNull(events.next()); next !== null && !next.done; next = await orNull(events.next())) {
      const event = next.value;
      failures = 0;
      lastId = event.id ?? lastId;
      handlers[event.name]?.(JSON.parse(event.data));
      if (event.name === "end") return;
    }
  }
  gone();
}

/** Return what a connection gives, null where it breaks. */
function orNull(promise) {
  return promise.catch(() => null);
}

/** Yield {name, id, data} of a stream of events, as the standard says. */
async function* eventsOf(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const event = { name: "message", id: null, data: "" };
      for (const line of block.split("\n")) {
        const [, field, content] = /^([a-z]*):? ?(.*)$/.exec(line) ?? [];
        if (field === "event") event.name = content;
        else if (field === "id") event.id = content;
        else if (field === "data") event.data += content;
      }
      if (event.data !== "") yield event;
    }
  }
}
