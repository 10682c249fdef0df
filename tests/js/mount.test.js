// A part stays where a newer answer overtakes one that still loads, and goes with its place on the page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { mountIn } from "../../contrastive_lab/components/shared/locale.js";

/** Mounts count what was built and stopped. */
function host() {
  const seen = { built: 0, stopped: 0 };
  const mount = (parent) => {
    if (!parent.part) {
      parent.part = true;
      seen.built++;
    }
    return () => {
      parent.part = false;
      seen.stopped++;
    };
  };
  return { seen, mount: (parent, language) => mountIn(mount, parent, new Uint8Array(), language, {}) };
}

test("an answer that is overtaken takes nothing away", () => {
  const { seen, mount } = host(),
    parent = { isConnected: true };
  const stop = mount(parent, "en");
  stop();
  mount(parent, "en");
  assert.deepEqual(seen, { built: 1, stopped: 0 });
});

test("a part goes with its place, and is built anew in another language", () => {
  const { seen, mount } = host(),
    parent = { isConnected: true };
  mount(parent, "en");
  const stop = mount(parent, "zh");
  assert.deepEqual(seen, { built: 2, stopped: 1 });
  parent.isConnected = false;
  stop();
  assert.deepEqual(seen, { built: 2, stopped: 2 });
});
