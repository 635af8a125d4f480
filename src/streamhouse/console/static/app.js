// The shell: which page is on screen, and how to get to others.

import { get, Problem } from "./lib/api.js";
import { closeDialogs, problemBox } from "./lib/dialog.js";
import { h, replace } from "./lib/dom.js";
import { ago, clock, zone } from "./lib/format.js";
import { onTrouble } from "./lib/live.js";
import { resolve } from "./lib/route.js";
import { Keyboard } from "./shell/keyboard.js";
import { themeSwitch } from "./shell/theme.js";

const PAGES = [
  { key: "o", path: "", title: "Overview" },
  { key: "t", path: "topics", title: "Topics" },
  { key: "g", path: "groups", title: "Groups" },
  { key: "c", path: "cluster", title: "Cluster" },
  { key: "s", path: "storage", title: "Storage" },
  { key: "p", path: "pipelines", title: "Pipelines" },
];
const ROUTES = [
  ["", () => import("./views/overview.js")],
  ["topics", () => import("./views/topics.js")],
  ["topics/:topic", () => import("./views/topic.js")],
  ["topics/:topic/messages", () => import("./views/messages.js")],
  ["groups", () => import("./views/groups.js")],
  ["groups/:group", () => import("./views/group.js")],
  ["cluster", () => import("./views/cluster.js")],
  ["storage", () => import("./views/storage.js")],
  ["storage/:topic/:partition", () => import("./views/storage.js")],
  ["pipelines", () => import("./views/pipelines.js")],
];

const UNAVAILABLE = 503;
const AGAIN_MS = 3_000;

const main = document.getElementById("main");
let leaving = new AbortController();

async function showPage() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  closeDialogs();
  markPage();
  const page = h("div", { class: "page" });
  replace(main, page);
  main.ariaBusy = "true";
  await fill(page, signal);
  if (signal.aborted) return;
  main.ariaBusy = "false";
  document.title = [page.querySelector("h1")?.textContent, "StreamHouse"].filter(Boolean).join(" · ");
  // What had the focus is gone with the last page: the keyboard goes on here.
  if (document.activeElement === document.body) main.focus({ preventScroll: true });
}

async function fill(page, signal) {
  const found = resolve(ROUTES, location.hash);
  const home = h("a", { href: "#/" }, "To the overview");
  if (!found) return void replace(page, h("h1", {}, "No such page"), h("p", {}, home));
  try {
    const view = await found.what().catch(scriptMissing);
    if (!signal.aborted) await view.render(page, found.params, signal);
  } catch (problem) {
    const again = h("button", { type: "button", onclick: showPage }, "Try again");
    if (signal.aborted) return;
    page.append(problemBox(problem), h("div", { class: "bar" }, again));
    again.scrollIntoView({ block: "nearest" });
    if (isAway(problem)) tryAgain(signal);
  }
}

function scriptMissing({ message }) {
  throw new Problem({ code: "unreachable", detail: `the node does not give the page's script: ${message}`, hint: "is it running?" });
}

/** Whether that may be over soon: the node does not answer, or cannot ask its metadata store. */
const isAway = ({ code, status }) => code === "unreachable" || status === UNAVAILABLE;

function tryAgain(left) {
  const timer = setTimeout(async () => {
    try {
      await get("cluster/health", {}, left);
    } catch {
      return left.aborted || tryAgain(left);
    }
    return left.aborted || showPage();
  }, AGAIN_MS);
  left.addEventListener("abort", () => clearTimeout(timer));
}

function markPage() {
  const section = location.hash.replace(/^#\/?/, "").split(/[/?]/)[0];
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.path === section) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

let oldSince = null;

/** What is on screen is old: the node could not be asked again, or does not know better itself. From when it is, is said
 * above it, and what claims that all is well is taken back (`claim`). */
function tellTrouble(trouble) {
  const live = document.getElementById("live");
  const text = trouble ? `not live: ${trouble.problem.message}` : "";
  // What is written anew is read out anew.
  if (live.textContent !== text) live.textContent = text;
  oldSince = trouble?.goodAt ?? null;
  document.body.classList.toggle("is-old", trouble !== null);
  tellAge();
}

function tellAge() {
  const old = document.getElementById("old");
  old.hidden = oldSince === null;
  if (oldSince !== null) old.textContent = `What is shown is from ${clock(oldSince)} ${zone(oldSince)}, ${ago(oldSince)}.`;
}

function skipToContent(event) {
  event.preventDefault(); // the address is the page's
  main.focus();
}

const links = PAGES.map(({ path, title, key }) =>
  h("a", { href: `#/${path}`, dataset: { path }, title: `g ${key}` }, title),
);
const keyboard = new Keyboard(PAGES, main);
replace(document.getElementById("nav"), links);
themeSwitch(document.getElementById("theme"));
document.getElementById("help").addEventListener("click", () => keyboard.help());
document.querySelector(".skip").addEventListener("click", skipToContent);
addEventListener("hashchange", showPage);
onTrouble(tellTrouble);
setInterval(tellAge, 1_000);
showPage();
