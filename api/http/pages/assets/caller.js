/** What the reader may do: the pages offer nothing else. */

import { get } from "./api.js";
import { storedKey } from "./key.js";

/** The answer, and the key that it was asked with. */
let known = null;

/** Whether the caller has a scope; false if its scopes cannot be read. */
export async function may(scope) {
  const key = storedKey();
  if (known === null || known.key !== key) known = { key, scopes: scopesOfReader() };
  return (await known.scopes).includes(scope);
}

async function scopesOfReader() {
  try {
    return (await get("/v1/caller")).scopes;
  } catch {
    known = null; // the next page asks again
    return [];
  }
}
