// JSON as it was written, only indented: numbers that a browser would round and repeated names stay what they are.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;
const MOST_TEXT = 300_000;
const MOST_DEPTH = 100;

/** The text indented, as [[kind, text], …] of kinds name, text, other; null if it is not JSON, or too much of it. */
export function prettyJson(text) {
  if (!isJson(text)) return null;
  const parts = [];
  let depth = 0;
  const tokens = text.match(TOKEN);
  for (const [index, token] of tokens.entries()) {
    const isEmpty = (token === "{" || token === "[") && "}]".includes(tokens[index + 1]);
    if ("{[".includes(token)) {
      if (++depth > MOST_DEPTH) return null;
      parts.push(["other", token + (isEmpty ? "" : line(depth))]);
    } else if ("}]".includes(token)) {
      depth -= 1;
      parts.push(["other", ("{[".includes(tokens[index - 1]) ? "" : line(depth)) + token]);
    } else if (token === ",") parts.push(["other", token + line(depth)]);
    else if (token === ":") parts.push(["other", ": "]);
    else parts.push([kind(token, tokens[index + 1]), token]);
  }
  return parts;
}

function isJson(text) {
  if (text.length > MOST_TEXT) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const line = (depth) => `\n${"  ".repeat(depth)}`;

function kind(token, next) {
  if (!token.startsWith('"')) return "number";
  return next === ":" ? "name" : "text";
}
