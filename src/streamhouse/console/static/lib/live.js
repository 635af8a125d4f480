// Pages that stay true: asked again and again while somebody looks, and not while the tab is hidden.

/** What takes long to answer is asked less often: this many times as long passes in between. */
const REST = 5;

/** What the last try of each loop ran into, if it did: that another one gets on does not mend it. */
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
  signal.addEventListener("abort", () => tell(loop, null));
  while (!signal.aborted) {
    await pause(Math.max(ms, took * REST), signal);
    await seen(signal);
    if (signal.aborted) return;
    const begin = performance.now();
    try {
      await fn();
      took = performance.now() - begin;
      tell(loop, null);
    } catch (problem) {
      if (!signal.aborted) tell(loop, problem);
    }
  }
}

/** What the shell hears of it: a problem that is not over, or null. */
export function onTrouble(listen) {
  document.addEventListener("streamhouse:live", (event) => listen(event.detail));
}

function tell(loop, problem) {
  if (problem) troubles.set(loop, problem);
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
