// A key or a value as the API shows it, text or base64, as what it is: bytes; and how people read those.

const MOST_HEX_BYTES = 16_384;
const PREVIEW = 240;

export function bytesOf(text, format) {
  if (format !== "base64") return new TextEncoder().encode(text);
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** One line for a table. */
export function preview(text, format) {
  if (text === null) return null;
  if (format === "base64") return `0x${hex(bytesOf(text.slice(0, 4 * Math.floor(PREVIEW / 12)), format), "")}`;
  return text.slice(0, PREVIEW);
}

/** As hex editors show it: where, sixteen bytes, and what of them is ASCII. */
export function hexDump(data) {
  const lines = [];
  for (let start = 0; start < Math.min(data.length, MOST_HEX_BYTES); start += 16) {
    const row = data.subarray(start, start + 16);
    const text = Array.from(row, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${start.toString(16).padStart(8, "0")}  ${hex(row, " ").padEnd(47)}  ${text}`);
  }
  if (data.length > MOST_HEX_BYTES) lines.push(`… ${data.length - MOST_HEX_BYTES} bytes more`);
  return lines.join("\n");
}

const hex = (data, between) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join(between);
