// Moves a group to other offsets: first what would change, and only after a look at that the change itself.

import { at, post } from "../../lib/api.js";
import { confirm, notify, problemBox } from "../../lib/dialog.js";
import { h, replace } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { button, choice, field, timeField } from "../../lib/page.js";
import { table } from "../../lib/table.js";

const PLACES = [
  ["earliest", "the oldest record"],
  ["latest", "the end"],
  ["offset", "an offset"],
  ["time", "a time"],
  ["shift", "so many records on (or back)"],
];

/** {element, update(group)}: a group that has members is not moved. `onDone` is told when it was. */
export function resetForm(groupId, topics, onDone) {
  const place = choice(PLACES, "earliest", { onchange: showPlace });
  const topic = choice([["", "all that it committed"], ...topics.map((name) => [name, name])], "");
  const where = h("div", { class: "reset-place" });
  function showPlace() {
    where.classList.toggle("wide", place.value === "time");
    replace(where, placeInput(place.value));
  }
  const preview = h("div", { class: "reset-preview", "aria-live": "polite" });
  const forget = () => replace(preview);
  const onSubmit = async (event) => {
    event.preventDefault();
    const request = requestOf(place.value, topic.value, where.querySelector("input"));
    try {
      const answer = await post(at`groups/${groupId}/reset`, { ...request, dry_run: true });
      replace(preview, movesShown(groupId, request, answer.partitions, () => (forget(), onDone())));
    } catch (problem) {
      replace(preview, problemBox(problem));
    }
  };
  const submit = h("button", { type: "submit" }, "Preview");
  const hint = h("p", { class: "muted", role: "status" });
  const fields = [field("Move to", place), where, field("Topic", topic), submit];
  for (const wide of [fields[0], fields[2]]) wide.classList.add("wide");
  return {
    element: h("div", {}, hint, h("form", { class: "fields", onsubmit: onSubmit, oninput: forget }, fields), preview),
    update({ members }) {
      submit.disabled = members.length > 0;
      hint.textContent = members.length > 0 ? "Only a group without members can be moved: stop its members first." : "A preview changes nothing.";
    },
  };
}

function placeInput(place) {
  if (place === "time") return timeField("Time", h("input", { type: "datetime-local", step: 1, required: true }));
  const inputs = {
    offset: ["Offset", { type: "number", min: 0, step: 1 }],
    shift: ["Records", { type: "number", step: 1 }],
  };
  const [name, kind] = inputs[place] ?? [];
  return name && field(name, h("input", { ...kind, required: true }));
}

function requestOf(place, topic, input) {
  const request = { to: place, topics: topic === "" ? [] : [topic] };
  if (place === "offset") request.offset = Number(input.value);
  if (place === "time") request.timestamp_ms = new Date(input.value).getTime();
  if (place === "shift") request.shift_by = Number(input.value);
  return request;
}

function movesShown(groupId, request, moves, onDone) {
  const changed = moves.filter((move) => move.new_offset !== null && move.new_offset !== move.old_offset);
  const apply = button(`Reset ${count(changed.length)} partitions`, () => confirmReset(groupId, request, changed.length, onDone), "danger");
  apply.disabled = changed.length === 0;
  return [
    h("p", {}, changed.length === 0 ? "Nothing would change." : summaryOf(changed)),
    table({ columns: MOVE_COLUMNS, rows: moves, key: nameOf, label: "what would change" }).element,
    h("div", { class: "actions" }, apply),
  ];
}

async function confirmReset(groupId, request, partitions, onDone) {
  const text = `The committed offsets of ${count(partitions)} partitions are moved as the preview shows, as of that moment.`;
  if (!(await confirm({ title: `Reset ${groupId}?`, text, typeToConfirm: groupId, action: "Reset" }))) return;
  try {
    await post(at`groups/${groupId}/reset`, { ...request, dry_run: false });
    notify(`${groupId} was reset`);
    onDone();
  } catch (problem) {
    notify(problem.hint ? `${problem.message}: ${problem.hint}` : problem.message, "bad");
  }
}

function summaryOf(changed) {
  let again = 0;
  let skipped = 0;
  for (const { old_offset: old, new_offset: moved } of changed) {
    if (old === null) continue;
    if (moved < old) again += old - moved;
    else skipped += moved - old;
  }
  return `${count(again)} records would be read again, ${count(skipped)} would be skipped.`;
}

const nameOf = (move) => `${move.topic}/${move.partition}`;

const MOVE_COLUMNS = [
  { name: "topic", title: "Topic", value: (move) => move.topic },
  { name: "partition", title: "Partition", value: (move) => move.partition, align: "right" },
  { name: "old", title: "Committed now", value: (move) => count(move.old_offset), align: "right" },
  { name: "new", title: "Would be", value: (move) => count(move.new_offset), align: "right" },
  { name: "change", title: "Change", value: changeOf, align: "right" },
];

function changeOf({ old_offset: old, new_offset: moved }) {
  if (moved === null || moved === old) return "none";
  if (old === null) return "new";
  return moved > old ? `+${count(moved - old)}` : `−${count(old - moved)}`;
}
