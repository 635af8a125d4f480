// Names of groups may hold anything.

/** Whether it can be a part of the API's addresses: not with a slash, and not one that means a place in a path. */
export function isSayable(groupId) {
  return groupId !== "" && !groupId.includes("/") && groupId !== "." && groupId !== "..";
}
