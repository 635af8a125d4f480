// The hash ring: outside, what it names each agent for; inside, a tick for every partition in the colour of its leader.
// An agent is one path whatever the number of its places and partitions, so 10,000 partitions stay cheap to draw.

import { h, replace, svg } from "../../lib/dom.js";
import { count, counted } from "../../lib/format.js";
import { claim } from "../../lib/page.js";
import { agentClass } from "./agent_colours.js";
import { stateOf } from "./agent_state.js";
import { partitionName } from "./watch.js";

const SIZE = 400;
const CENTRE = SIZE / 2;
const OWNED_RADIUS = 184;
const TICK_OUTER = 168;
const TICK_INNER = 148;
const LEADERLESS_INNER = 136;
const MOVED_RADIUS = 130;
const THICKEST_TICK = 1.5;
const THINNEST_TICK = 0.1;
const ROOM_FOR_TICKS = 700;
const SHOWN_MOVES = 300;
const POINTING_REACH = 0.02;

export class RingDrawing {
  /** `onPoint` is told the partition that the pointer is at, or null. */
  constructor(onPoint) {
    this.partitions = [];
    this.owned = svg("g", {});
    this.ticks = svg("g", {});
    this.moved = svg("g", {});
    this.count = svg("text", { x: CENTRE, y: CENTRE - 6, class: "ring-count" });
    this.state = svg("text", { x: CENTRE, y: CENTRE + 20, class: "ring-state" });
    // In the page and not in an attribute, so that what it claims is taken back with the rest.
    this.name = h("span", { id: "ring-name", class: "visually-hidden" }, "Hash ring");
    this.picture = svg(
      "svg",
      { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "ring" },
      this.owned, this.ticks, this.moved, this.count, this.state,
    );
    this.element = h("div", { role: "img", "aria-labelledby": this.name.id }, this.name, this.picture);
    this.picture.addEventListener("pointermove", (event) => onPoint(this.#partitionAt(event)));
    this.picture.addEventListener("pointerleave", () => onPoint(null));
  }

  update(ring, movedNames) {
    this.partitions = ring.partitions;
    // The first six agents by name have colours of their own, wherever on the ring they come first.
    for (const agent of ring.agents) agentClass(agent.agent_id);
    replace(this.owned, ...ownedPaths(ring.agents));
    replace(this.ticks, ...tickPaths(ring.partitions));
    if (movedNames.length > 0) this.#pointAtMoves(new Set(movedNames));
    const live = ring.agents.filter((agent) => stateOf(agent) === "live").length;
    const leaderless = ring.partitions.filter((each) => each.leader === null).length;
    const agents = `${live} of ${count(ring.agents.length)} agents live`;
    const partitions = `${counted(ring.partitions.length, "partition")}${leaderless > 0 ? `, ${leaderless} without a leader` : ""}`;
    replace(this.count, svg("tspan", { class: "claim-now" }, agents), svg("tspan", { class: "claim-old" }, "not known"));
    this.state.textContent = partitions;
    this.state.classList.toggle("is-bad", leaderless > 0);
    replace(this.name, "Hash ring: ", claim(`${agents}, ${partitions}`));
  }

  #pointAtMoves(names) {
    const moved = this.partitions.filter((each) => names.has(partitionName(each))).slice(0, SHOWN_MOVES);
    const marks = moved.map((each) => {
      const [x, y] = at(each.position, MOVED_RADIUS);
      return svg("circle", { cx: x, cy: y, r: 4, class: `ring-moved ${agentClass(each.leader)}` });
    });
    replace(this.moved, ...marks);
  }

  #partitionAt(event) {
    const box = this.picture.getBoundingClientRect();
    const x = event.clientX - box.left - box.width / 2;
    const y = event.clientY - box.top - box.height / 2;
    const pointed = (Math.atan2(x, -y) / (2 * Math.PI) + 1) % 1;
    let nearest = null;
    let reach = POINTING_REACH;
    for (const partition of this.partitions) {
      const apart = Math.abs(partition.position - pointed);
      const distance = Math.min(apart, 1 - apart);
      if (distance < reach) [nearest, reach] = [partition, distance];
    }
    return nearest;
  }
}

/** Named is an agent for what lies before each of its places, back to the place before it. */
function ownedPaths(agents) {
  const places = agents.flatMap((agent) => agent.positions.map((position) => ({ position, id: agent.agent_id })));
  places.sort((one, other) => one.position - other.position);
  const drawn = new Map();
  places.forEach(({ position, id }, index) => {
    const start = index === 0 ? places[places.length - 1].position - 1 : places[index - 1].position;
    drawn.set(id, (drawn.get(id) ?? "") + arc(start, position));
  });
  return [...drawn].map(([id, path]) => svg("path", { d: path, class: `ring-owned ${agentClass(id)}` }));
}

function tickPaths(partitions) {
  const drawn = new Map();
  for (const { position, leader } of partitions) {
    const inner = leader === null ? LEADERLESS_INNER : TICK_INNER;
    const tick = `M${at(position, TICK_OUTER).join(" ")}L${at(position, inner).join(" ")}`;
    drawn.set(leader, (drawn.get(leader) ?? "") + tick);
  }
  // Those without a leader last, on top of all others.
  const byLeader = [...drawn].sort(([one], [other]) => (one === null) - (other === null));
  const width = Math.max(THINNEST_TICK, Math.min(THICKEST_TICK, ROOM_FOR_TICKS / partitions.length));
  return byLeader.map(([leader, path]) => svg("path", { d: path, "stroke-width": leader === null ? width + 1 : width, class: `ring-tick ${agentClass(leader)}` }));
}

function arc(start, end) {
  const isLong = end - start > 0.5 ? 1 : 0;
  const radius = OWNED_RADIUS;
  if (end - start >= 1) return arc(start, start + 0.5) + arc(start + 0.5, end - 1e-6);
  return `M${at(start, radius).join(" ")}A${radius} ${radius} 0 ${isLong} 1 ${at(end, radius).join(" ")}`;
}

/** Clockwise from the top. */
function at(fraction, radius) {
  const angle = fraction * 2 * Math.PI;
  return [(CENTRE + radius * Math.sin(angle)).toFixed(2), (CENTRE - radius * Math.cos(angle)).toFixed(2)];
}
