// Small help with the document. Text only ever enters it as text: there is no way here to write HTML.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/**
 * A new element. Properties are set as properties, but for `class`, `data-*`, `aria-*`, `role`, `scope` and
 * `for`; children are nodes or text.
 */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (/^(class|role|scope|for|colspan|(data|aria)-.*)$/.test(name)) node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
}

/** Sets a node's text, unless it is there already: what did not change is not touched, nor announced again. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets or removes an attribute, unless it is so already. */
export function attribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

const lists = new WeakMap();

/**
 * Makes the children of `parent` stand for `items`, in order. A node stays the same node as long as its key
 * is there, so that focus and hover survive each refresh. `create(item)` gives a part with its `node`; it runs
 * once for each key, so what changes belongs into `update(part, item)`.
 */
export function list(parent, items, key, create, update = () => {}) {
  const known = lists.get(parent) ?? new Map();
  const next = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const part = known.get(name) ?? create(item);
    next.set(name, part);
    known.delete(name);
    update(part, item);
    if (part.node === place) place = place.nextElementSibling;
    else parent.insertBefore(part.node, place);
  }
  for (const part of known.values()) part.node.remove();
  lists.set(parent, next);
}

/** A table row of named cells: `{ node, cells }`. The first is the row's heading. */
export function row(columns) {
  const cells = {};
  const node = el("tr", { role: "row" });
  for (const [index, [name, label, kind]] of columns.entries()) {
    const heading = index === 0;
    const properties = heading ? { scope: "row", role: "rowheader" } : { role: "cell" };
    if (kind) properties.class = kind;
    cells[name] = el(heading ? "th" : "td", { ...properties, "data-label": label });
    node.append(cells[name]);
  }
  return { node, cells };
}

/** The heading row of a table with these columns. */
export function heading(table, columns) {
  const cells = columns.map(([, label, kind]) =>
    el("th", { scope: "col", role: "columnheader", ...(kind ? { class: kind } : {}) }, label));
  table.tHead.replaceChildren(el("tr", { role: "row" }, ...cells));
}

/** A word in a coloured frame. Kinds: `good`, `warn`, `bad`, `quiet`. */
export function badge(text, kind = "quiet", title = "") {
  return el("span", { class: `badge ${kind}`, title }, text);
}

/** Replaces the children of `node`, unless what is there looks the same already. */
export function show(node, ...children) {
  const wanted = node.cloneNode(false);
  wanted.append(...children);
  if (!wanted.isEqualNode(node)) node.replaceChildren(...wanted.childNodes);
}
