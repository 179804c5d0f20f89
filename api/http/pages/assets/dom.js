/** Elements from values. Text is always text: nothing here, and nowhere else in these pages, parses markup. */

/**
 * Return an element.
 *
 * Attributes that are functions listen to the event of their name; true sets an empty attribute, and null, undefined
 * and false leave one out. Children are nodes, strings, numbers, or arrays of them; null and false are left out.
 */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, String(value));
  }
  append(element, children);
  return element;
}

/** Append what `h` takes as children. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Put children in place of those that an element has. */
export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

let counter = 0;

/** Return an id that no other element of the page has. */
export function newId(prefix) {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** Return a link. Addresses are made of fixed parts and of parts that went through `segment`. */
export function link(href, ...children) {
  return h("a", { href }, children);
}

/** An identifier that may break after its dots and underscores. */
export function breakable(text) {
  return text.split(/(?<=[._])/).flatMap((part, i) => (i === 0 ? [part] : [h("wbr"), part]));
}

/** Return a part of a path. */
export function segment(text) {
  return encodeURIComponent(text);
}

/** Return the path of a channel's name, whose slashes are part of the address. */
export function channelPath(name) {
  return name.split("/").map(segment).join("/");
}
