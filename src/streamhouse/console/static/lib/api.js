// The REST API, which is all that the console knows of a node.

const BASE = "/api/v1/";

/** What went wrong, with the fields of RFC 9457: `code` is what to go by, `detail` and `hint` are for people. */
export class Problem extends Error {
  constructor({ status = 0, code = "unknown", title = "", detail = "", hint = "" }) {
    super(detail || title || code);
    Object.assign(this, { name: "Problem", status, code, title, detail, hint });
  }
}

/** A path whose parts are names that may hold anything: at`topics/${name}/partitions`. */
export function at(texts, ...names) {
  return String.raw({ raw: texts }, ...names.map(encodeURIComponent));
}

export const get = (path, query, signal) => call("GET", path, { query, signal });
export const post = (path, body, signal) => call("POST", path, { body, signal });
export const put = (path, body, signal) => call("PUT", path, { body, signal });
export const patch = (path, body, signal) => call("PATCH", path, { body, signal });
export const del = (path, signal) => call("DELETE", path, { signal });

const MOST_ROWS = 20_000;

/** All pages of a list, of which `field` is the name: at most so many rows, as a browser has to hold them. `onPage` is
 * told what else each says. */
export async function all(path, field, query, signal, onPage = () => {}) {
  const rows = [];
  let after = query?.after;
  do {
    const page = await get(path, { limit: 10_000, ...query, after }, signal);
    onPage(page);
    rows.push(...page[field]);
    after = page.next;
  } while (after !== null && after !== undefined && rows.length < MOST_ROWS);
  return rows;
}

/** Where a call goes, without what is null, undefined or empty. */
export function url(path, query) {
  const given = Object.entries(query ?? {}).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  return BASE + path + (given.length ? `?${new URLSearchParams(given)}` : "");
}

async function call(method, path, { query, body, signal }) {
  const request = { method, signal, headers: { Accept: "application/json" } };
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  const answer = await fetch(url(path, query), request).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Problem({ code: "unreachable", detail: "the node does not answer", hint: "is it running?" });
  });
  const content = await answer.text();
  if (!answer.ok) throw problemOf(answer, content);
  return content ? JSON.parse(content) : null;
}

function problemOf(answer, content) {
  try {
    return new Problem({ status: answer.status, ...JSON.parse(content) });
  } catch {
    return new Problem({
      status: answer.status,
      code: "unknown",
      detail: `HTTP ${answer.status} ${answer.statusText}`,
    });
  }
}
