// What somebody should look at now: each alert with where it leads, and with what a person may want to run. A card stays
// the same element while its text changes, so that what is being pressed or read is not taken away.

import { h, replace } from "../../lib/dom.js";
import { claim, command, middle } from "../../lib/page.js";
import { to } from "../../lib/route.js";

export function alertCards() {
  const none = h("p", { class: "muted" }, claim(h("span", { class: "good", "aria-hidden": "true" }, "● "), "No alerts"));
  const element = h("section", { "aria-label": "Alerts", class: "page" });
  const cards = new Map();
  return {
    element,
    update(alerts) {
      const seen = new Map(alerts.map((alert, index) => [`${alert.code} ${index}`, alert]));
      for (const key of [...cards.keys()]) if (!seen.has(key)) cards.delete(key);
      for (const [key, alert] of seen) {
        if (!cards.has(key)) cards.set(key, card());
        cards.get(key).update(alert);
      }
      const wanted = cards.size ? [...seen.keys()].map((key) => cards.get(key).element) : [none];
      if (wanted.some((one, index) => element.children[index] !== one) || element.children.length !== wanted.length)
        replace(element, wanted);
    },
  };
}

function card() {
  const text = h("strong", {});
  const advice = h("span", {});
  const links = h("div", { class: "bar alert-links" });
  const commands = h("div", {});
  const code = h("span", { class: "muted mono" });
  const element = h("div", { class: "card alert" }, text, advice, links, commands, code);
  let places = "";
  return {
    element,
    update(alert) {
      element.className = `card alert ${alert.severity}`;
      say(text, `${alert.severity}: ${alert.text}`);
      say(advice, alert.what_to_do);
      say(code, alert.code);
      const now = JSON.stringify([alert.agents, alert.partitions, alert.pipelines, alert.commands]);
      if (now === places) return;
      places = now;
      replace(links, linksOf(alert));
      links.hidden = !links.children.length;
      replace(commands, alert.commands.map((line) => command("command", line)));
    },
  };
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function linksOf({ agents, partitions, pipelines }) {
  const link = (name, address) => h("a", { class: "button small", href: address }, middle(name));
  return [
    agents.map((agent) => link(agent, to("cluster", { agent }))),
    partitions.map(({ topic, partition }) => link(`${topic}/${partition}`, to("cluster", { partition: `${topic}/${partition}` }))),
    pipelines.map((name) => link(name, to("pipelines", { name }))),
  ];
}
