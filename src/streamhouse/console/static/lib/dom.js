// Elements without markup: text becomes text nodes and nothing is ever parsed as HTML, so that a hostile name or value
// is only ever shown.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "selected", "indeterminate"]);

/** An element. Attributes: `onclick: function` listens, `style: {}` and `dataset: {}` are set one by one, true and
 * false put an attribute or leave it out, null and undefined are left out. Children: nodes, text, arrays of them. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Let these be all that is in `root`. */
export function replace(root, ...children) {
  root.replaceChildren(...nodes(children));
  return root;
}

function fill(element, attributes, children) {
  element.append(...nodes(children));
  // After the children: the value of a select is one of its options.
  for (const [name, value] of Object.entries(attributes ?? {})) set(element, name, value);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined) return;
  if (typeof value === "function") element.addEventListener(name.slice("on".length), value);
  else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (PROPERTIES.has(name)) element[name] = value;
  else if (typeof value === "boolean" && !name.startsWith("aria-")) element.toggleAttribute(name, value);
  else element.setAttribute(name, value);
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
