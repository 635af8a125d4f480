// Numbers and times for people. What is not known is a dash.

const NONE = "–";
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, notation: "compact" });

const isKnown = (value) => value !== null && value !== undefined && !Number.isNaN(value);

/** 12,345 */
export const count = (value) => (isKnown(value) ? whole.format(value) : NONE);

/** 12,345 groups, or 1 group */
export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** 12.3K, where there is little room */
export const brief = (value) => (isKnown(value) ? short.format(value) : NONE);

/** 1.5 MiB */
export function bytes(value) {
  if (!isKnown(value)) return NONE;
  const power = value < 1 ? 0 : Math.min(BINARY.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${Number(scaled.toFixed(scaled < 100 ? 1 : 0))} ${BINARY[power]}`;
}

/** 1,250 /s */
export const rate = (value) =>
  isKnown(value) ? `${value < 10 ? Number(value.toFixed(1)) : whole.format(value)} /s` : NONE;

/** 1.5 MiB/s */
export const byteRate = (value) => (isKnown(value) ? `${bytes(value)}/s` : NONE);

/** Of milliseconds: 870 ms, 12.5 s, 3 min 20 s, 5 h 10 min, 7 d */
export function duration(ms) {
  if (!isKnown(ms)) return NONE;
  if (ms < 0) return "forever";
  if (ms < 1) return `${Number(ms.toFixed(2))} ms`;
  if (ms < 1000) return `${Number(ms.toPrecision(3))} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 3600) return two(seconds, 60, "min", 1, "s");
  if (seconds < 86_400) return two(seconds, 3600, "h", 60, "min");
  return two(seconds, 86_400, "d", 3600, "h");
}

function two(seconds, large, largeName, small, smallName) {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${largeName}${rest ? ` ${rest} ${smallName}` : ""}`;
}

/** UTC, UTC+2, UTC-3:30: of this place at a time */
export function zone(ms) {
  const minutes = -new Date(ms).getTimezoneOffset();
  if (!minutes) return "UTC";
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? "-" : "+"}${hours}${rest ? `:${String(rest).padStart(2, "0")}` : ""}`;
}

/** What Kafka says of a record that has none. */
const NO_TIME = -1;

/** Of milliseconds since 1970: 2026-01-31 14:05:09.123 UTC+2, here */
export function time(ms) {
  if (!isKnown(ms) || ms === NO_TIME) return NONE;
  const here = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  // At the end of all dates the one here may be beyond it.
  if (Number.isNaN(here.getTime())) return NONE;
  return `${here.toISOString().slice(0, -1).replace("T", " ")} ${zone(ms)}`;
}

/** 14:05:09 */
export const clock = (ms) => time(ms).slice(11, 19);

/** 4 min ago */
export const ago = (ms, now = Date.now()) => (isKnown(ms) ? `${duration(Math.max(0, now - ms))} ago` : NONE);

/** 12.5 % */
export const percent = (share) => (isKnown(share) ? `${Number((share * 100).toFixed(1))} %` : NONE);
