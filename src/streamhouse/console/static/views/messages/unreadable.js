// Records that are stored and cannot be shown, which a search or a live tail has passed over.

/** As a problem, for `problemBox`. */
export function passedOver({ problem, next_offset: next }) {
  return { title: "Records were passed over", message: problem, hint: `What follows begins at offset ${next}.` };
}
