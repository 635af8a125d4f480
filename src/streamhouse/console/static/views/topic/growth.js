// The form that gives a topic more partitions.

import { at, get, patch } from "../../lib/api.js";
import { form, notify } from "../../lib/dialog.js";
import { h } from "../../lib/dom.js";
import { field } from "../../lib/page.js";

export async function addPartitions(name) {
  const { partition_count: current } = await get(at`topics/${name}`);
  const wanted = h("input", { type: "number", required: true, min: current + 1, max: 10_000, autofocus: true });
  const isDone = await form({
    title: `Add partitions to ${name}`,
    action: "Add",
    body: [
      h("p", {}, "They cannot be taken away again, and most keys go to another partition from then on."),
      field("Partitions in all", wanted, `There are ${current} now`),
    ],
    submit: () => patch(at`topics/${name}`, { partition_count: Number(wanted.value) }),
  });
  if (isDone) notify(`${name} has ${wanted.value} partitions now.`);
}
