// What asks, and what tells.

import { h, replace } from "./dom.js";

const NOTICE_MS = 6_000;

/** Whether the person means it. `typeToConfirm`: what has to be typed first, for what cannot be undone. */
export function confirm({ title, text, typeToConfirm, action = "Delete" }) {
  const typed = h("input", {
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Type the name to confirm",
  });
  const body = [
    h("p", {}, text),
    typeToConfirm && h("label", { class: "field" }, ["Type ", h("code", {}, typeToConfirm), " to confirm"], typed),
  ];
  return form({
    title,
    body,
    action,
    isDangerous: true,
    isReady: () => !typeToConfirm || typed.value === typeToConfirm,
  });
}

/** A form in a dialog; true once it was submitted. `submit` may throw: the form then shows why and stays. */
export function form({ title, body, action, submit = () => {}, isDangerous = false, isReady = () => true }) {
  return new Promise((resolve) => {
    const error = h("div", { role: "alert" });
    const act = h("button", { type: "submit", class: isDangerous ? "danger" : "primary" }, action);
    const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
    const onSubmit = async (event) => {
      event.preventDefault();
      if (act.disabled) return;
      act.disabled = true;
      try {
        await submit();
        dialog.close("done");
      } catch (problem) {
        replace(error, problemBox(problem));
        act.disabled = false;
      }
    };
    const content = h(
      "form",
      { onsubmit: onSubmit, oninput: () => (act.disabled = !isReady()) },
      h("h2", {}, title),
      body,
      error,
      h("div", { class: "actions" }, cancel, act),
    );
    const dialog = open(content, title, (result) => resolve(result === "done"));
    act.disabled = !isReady();
  });
}

/** A dialog with something to read, and perhaps buttons that lead to more of it. rename(title): it is about that now. */
export function show({ title, body, actions = null }) {
  const head = h("h2", {}, title);
  const close = h("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Close");
  const dialog = open(h("div", {}, head, body, h("div", { class: "actions" }, actions, close)), title, () => {});
  return {
    rename(text) {
      head.textContent = text;
      dialog.ariaLabel = text;
    },
  };
}

/** Of a page that is left. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

/** A short message; kinds: good, bad. */
export function notify(text, kind = "good") {
  const notice = h("div", { class: `notice ${kind}` }, text);
  document.getElementById("notices").append(notice);
  setTimeout(() => notice.remove(), NOTICE_MS);
}

/** A problem, as a part of a page. */
export function problemBox(problem) {
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("strong", {}, problem.title || problem.name || "Error"),
    h("div", {}, problem.message),
    problem.hint && h("div", { class: "muted" }, problem.hint),
  );
}

function open(content, title, onClose) {
  const dialog = h("dialog", { "aria-label": title }, content);
  dialog.addEventListener("close", () => {
    dialog.remove();
    onClose(dialog.returnValue);
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
