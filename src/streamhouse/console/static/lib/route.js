// Addresses of pages: #/topics/orders/messages?partition=3. Names in them may hold anything.

/** The address of a page: to("topics", name, "messages") with its query. */
export function to(...parts) {
  const query = typeof parts.at(-1) === "object" ? parts.pop() : {};
  return `#/${parts.map(encodeURIComponent).join("/")}${queryText(query)}`;
}

export function go(...parts) {
  location.hash = to(...parts);
}

/** Let the address say how the page is looked at, so that it can be shared, without rendering the page again. */
export function keepQuery(query) {
  history.replaceState(null, "", location.hash.split("?")[0] + queryText(query));
}

/** The same for another look at the page, from which the browser leads back. */
export function stepQuery(query) {
  history.pushState(null, "", location.hash.split("?")[0] + queryText(query));
}

/** Which of the routes, [pattern, what], the address means: {what, params}, or null. Parts like :topic are params, and
 * `params.query` is a URLSearchParams. */
export function resolve(routes, hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decoded);
  for (const [pattern, what] of routes) {
    const params = match(pattern.split("/").filter(Boolean), parts);
    if (params) return { what, params: { ...params, query: new URLSearchParams(query) } };
  }
  return null;
}

function match(pattern, parts) {
  if (pattern.length !== parts.length) return null;
  const params = {};
  for (const [index, part] of pattern.entries()) {
    if (part.startsWith(":")) params[part.slice(1)] = parts[index];
    else if (part !== parts[index]) return null;
  }
  return params;
}

function queryText(query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
