// Pages that stay true: asked again and again while somebody looks, and not while the tab is hidden.

/** What takes long to answer is asked less often: this many times as long passes in between. */
const REST = 5;

/** A look that takes longer than this is told of: what is on screen is from before. */
const PATIENCE_MS = 6_000;

/** What the last try of each loop ran into, if it did, and when it last went well: that another one gets on does not
 * mend it. */
const troubles = new Map();

/** Call `fn` now and then `ms` after each time that it ended, until `signal` aborts. Wait for it to know that the first
 * call went well: what that one throws is thrown here, what later ones throw is told to the shell, and tried again. */
export async function every(ms, signal, fn) {
  await fn();
  later(ms, signal, fn);
}

/** The same for a page that has just been filled: the first call is in `ms`. */
export async function later(ms, signal, fn) {
  const loop = Symbol("loop");
  let took = 0;
  let goodAt = Date.now();
  signal.addEventListener("abort", () => tell(loop, null));
  while (!signal.aborted) {
    await pause(Math.max(ms, took * REST), signal);
    await seen(signal);
    if (signal.aborted) return;
    const begin = performance.now();
    const beganAt = Date.now();
    const slow = setTimeout(() => signal.aborted || tell(loop, SLOW, goodAt), PATIENCE_MS);
    try {
      await fn();
      took = performance.now() - begin;
      goodAt = beganAt;
      tell(loop, null);
    } catch (problem) {
      if (!signal.aborted) tell(loop, problem, goodAt);
    } finally {
      clearTimeout(slow);
    }
  }
}

const SLOW = new Error(`the node takes longer than ${PATIENCE_MS / 1000} s to answer`);

/** What the shell hears of it: {problem, goodAt}, of the first that is not over, or null. `goodAt`: what is on screen is
 * from then. */
export function onTrouble(listen) {
  document.addEventListener("streamhouse:live", (event) => listen(event.detail));
}

/** Something that a page shows and that is old, though the node answers: returns tell(problem, goodAt), or tell(null)
 * when it is not so any more. */
export function aging(signal) {
  const what = Symbol("aging");
  signal.addEventListener("abort", () => tell(what, null));
  return (problem, goodAt) => signal.aborted || tell(what, problem, goodAt);
}

const STORE_AWAY = new Error("the metadata store does not answer the node");

/** The same for answers that go on without the metadata store: returns tell(since when it is silent, or null if it is
 * not), with another goodAt if more is known of that. */
export function agingWithStore(signal) {
  const old = aging(signal);
  return (since, goodAt = since) => old(since !== null && STORE_AWAY, goodAt);
}

function tell(loop, problem, goodAt) {
  if (problem) troubles.set(loop, { problem, goodAt });
  else troubles.delete(loop);
  const [first = null] = troubles.values();
  document.dispatchEvent(new CustomEvent("streamhouse:live", { detail: first }));
}

function pause(ms, signal) {
  return first(signal, (done) => {
    const timer = setTimeout(done, ms);
    return () => clearTimeout(timer);
  });
}

function seen(signal) {
  if (!document.hidden) return undefined;
  return first(signal, (done) => {
    document.addEventListener("visibilitychange", done);
    return () => document.removeEventListener("visibilitychange", done);
  });
}

/** Until what `begin` waits for, or the end; nothing of it stays. */
function first(signal, begin) {
  return new Promise((resolve) => {
    const done = () => {
      end();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const end = begin(done);
    signal.addEventListener("abort", done);
  });
}
