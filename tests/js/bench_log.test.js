import assert from "node:assert/strict";
import test from "node:test";

import { decide, kept, markOf, newLog, undo } from "../../contrastive_lab/components/bench/log.js";

const items = ["a", "b", "c"].map((id) => ({ id, mark: "", label: "" }));

test("what is not kept is reported again, in order, and shown before the server has it", () => {
  const log = newLog("w");
  decide(log, items.slice(0, 1), "keep", () => "");
  decide(log, items.slice(1, 2), "relabel", () => "5");
  decide(log, items.slice(2), "drop", () => "");
  assert.deepEqual(
    log.events.map((event) => [event.seq, event.what, event.items[0].id, event.items[0].label]),
    [
      [1, "keep", "a", ""],
      [2, "relabel", "b", "5"],
      [3, "drop", "c", ""],
    ],
  );
  assert.deepEqual(markOf(log, items[1]), { mark: "relabel", label: "5" });
  kept(log, { nonce: "another window", seq: 3 });
  assert.equal(log.events.length, 3);
  kept(log, { nonce: "w", seq: 2 });
  assert.deepEqual(
    log.events.map((event) => event.seq),
    [3],
  );
  assert.equal(markOf(log, items[0]).mark, "keep"); // until all is kept the local marks stand
  kept(log, { nonce: "w", seq: 3 });
  assert.equal(markOf(log, items[0]).mark, ""); // from here on the server's
});

test("undo goes back one by one, and asks the server where it knows of nothing", () => {
  const log = newLog("w");
  decide(log, items.slice(0, 1), "keep", () => "");
  decide(log, items, "drop", () => "");
  assert.deepEqual(undo(log), ["a", "b", "c"]); // all of one press
  assert.equal(markOf(log, items[0]).mark, "keep");
  assert.equal(markOf(log, items[1]).mark, "");
  assert.deepEqual(undo(log), ["a"]);
  assert.equal(markOf(log, items[0]).mark, "");
  assert.deepEqual(undo(log), []);
  assert.deepEqual(
    log.events.map((event) => event.what),
    ["keep", "drop", "undo", "undo", "undo"],
  );
});
