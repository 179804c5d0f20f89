/** The HTTP API of this server. */

import { keyHeaders } from "./key.js";

/** The event of the window that says that the server wants to see a key, or another one. */
export const KEY_NEEDED = "key-needed";

/** An answer that is an error: a problem document (RFC 9457), or what was left of one. */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `the server answered ${status}`);
    this.status = status;
    this.document = document;
  }
}

/** Ask for JSON; anything but success becomes a `Problem`. */
export async function request(address, options = {}) {
  const { method = "GET", body, headers = {} } = options;
  let answer;
  try {
    answer = await fetch(address, {
      method,
      headers: {
        Accept: "application/json",
        ...keyHeaders(),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      body: typeof body === "string" || body === undefined ? body : JSON.stringify(body),
    });
  } catch {
    throw new Problem(0, {
      title: "The server does not answer",
      detail: "Is it running? Nothing was changed; try again.",
    });
  }
  const text = await answer.text();
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    document = { title: "No JSON came back", detail: `The server answered ${answer.status}.` };
    throw new Problem(answer.status, document);
  }
  if (!answer.ok) throw refused(answer.status, document);
  return { document, etag: answer.headers.get("ETag") };
}

/** Return what is wrong, and say so to everybody where a key is needed. */
function refused(status, document) {
  const problem = new Problem(status, document);
  if (status === 401) globalThis.dispatchEvent(new CustomEvent(KEY_NEEDED, { detail: problem }));
  return problem;
}

/** Ask for a document. */
export async function get(address) {
  return (await request(address)).document;
}

/** Ask for a document that may not be there: null then. */
export async function getOrNull(address) {
  try {
    return await get(address);
  } catch (problem) {
    if (problem instanceof Problem && problem.status === 404) return null;
    throw problem;
  }
}

/** Post a document. */
export async function post(address, body, headers = {}) {
  return (await request(address, { method: "POST", body, headers })).document;
}

/** Save what is at an address as a file, for links that a browser follows without the reader's key. */
export async function save(address) {
  const answer = await fetch(address, { headers: keyHeaders() });
  if (!answer.ok) throw refused(answer.status, await answer.json());
  const ending = (answer.headers.get("Content-Type") ?? "").startsWith("text/html") ? "html" : "json";
  const file = document.createElement("a");
  file.href = URL.createObjectURL(await answer.blob());
  const name = decodeURIComponent(new URL(address, location).pathname.split("/").at(-1));
  file.download = `${name.replaceAll(":", "-")}.${ending}`;
  file.click();
  URL.revokeObjectURL(file.href);
}

/** Return an address with a query; values that are null or empty are left out. */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}
