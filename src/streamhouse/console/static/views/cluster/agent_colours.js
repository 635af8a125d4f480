// An agent keeps its colour for as long as the console is open, whoever comes and goes.

const COLOURS = 6;
const numbers = new Map();

export function agentClass(agentId) {
  if (agentId === null) return "agent-none";
  if (!numbers.has(agentId)) numbers.set(agentId, numbers.size % COLOURS);
  return `agent-${numbers.get(agentId)}`;
}
