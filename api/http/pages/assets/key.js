/** The key that a reader shows to a server which asks for one: kept by this tab alone, and forgotten with it. */

const NAME = "shardplan-key";

/** Return the key, or null. */
export function storedKey() {
  return sessionStorage.getItem(NAME);
}

/** Keep a key. */
export function keepKey(text) {
  sessionStorage.setItem(NAME, text.trim());
}

/** Forget the key. */
export function forgetKey() {
  sessionStorage.removeItem(NAME);
}

/** Return the headers that show the key, where there is one. */
export function keyHeaders() {
  const key = storedKey();
  return key === null ? {} : { Authorization: `Bearer ${key}` };
}
