// What was decided since the server last said what it has: shown at once, reported until it is kept. No elements.

/**
 * @typedef {{mark: string, label: string}} Mark
 * @typedef {{id: string, label: string}} Decided
 * @typedef {{seq: number, what: string, items?: Decided[]}} Event
 */

/** @param {string} nonce names this window, so that its numbers are no other's */
export function newLog(nonce) {
  return {
    nonce,
    seq: 0,
    /** @type {Event[]} */ events: [], // not yet kept, in order
    /** @type {Map<string, Mark>} */ local: new Map(), // marks that go before the server's
    /** @type {{id: string, before: Mark}[][]} */ stack: [], // to undo without asking
  };
}

/**
 * @param {ReturnType<typeof newLog>} log
 * @param {any} item as BenchItem
 * @returns {Mark}
 */
export function markOf(log, item) {
  return log.local.get(item.id) || { mark: item.mark, label: item.label };
}

/**
 * Decide on some samples at once.
 *
 * @param {ReturnType<typeof newLog>} log
 * @param {any[]} items
 * @param {string} what keep, relabel, drop
 * @param {(item: any) => string} labelOf of a relabel
 */
export function decide(log, items, what, labelOf) {
  log.stack.push(items.map((item) => ({ id: item.id, before: markOf(log, item) })));
  const decided = items.map((item) => ({ id: item.id, label: labelOf(item) }));
  for (const { id, label } of decided) log.local.set(id, { mark: what, label });
  log.events.push({ seq: ++log.seq, what, items: decided });
}

/**
 * Take the last decision back; the ids that it was on, none where only the server knows.
 *
 * @param {ReturnType<typeof newLog>} log
 */
export function undo(log) {
  const last = log.stack.pop() ?? [];
  for (const { id, before } of last) log.local.set(id, before);
  log.events.push({ seq: ++log.seq, what: "undo" });
  return last.map(({ id }) => id);
}

/**
 * The server has all events up to a number; of another window it says nothing.
 *
 * @param {ReturnType<typeof newLog>} log
 * @param {{nonce?: string, seq?: number}} ack
 */
export function kept(log, ack) {
  if (ack.nonce !== log.nonce) return;
  log.events = log.events.filter((event) => event.seq > ack.seq);
  if (!log.events.length) log.local.clear();
}
