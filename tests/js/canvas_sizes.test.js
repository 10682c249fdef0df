// A frame asks no canvas for its size that has not changed since it was laid out.

import assert from "node:assert/strict";
import { test } from "node:test";

import { forgetSize, sizeOf, watchSizes } from "../../contrastive_lab/components/shared/canvas.js";

test("a watched canvas is measured when it is laid out, and where it was hidden or moved", () => {
  let asked = 0,
    width = 0,
    changed = () => {},
    drawn = 0;
  const canvas = /** @type {any} */ ({
      get clientWidth() {
        asked++;
        return width;
      },
      clientHeight: 50,
    }),
    root = /** @type {any} */ ({ clientWidth: 600, clientHeight: 400, querySelectorAll: () => [canvas] });
  globalThis.ResizeObserver = /** @type {any} */ (
    class {
      constructor(then) {
        changed = () => then([{ target: canvas }]);
      }
      observe() {}
    }
  );
  watchSizes(root, () => drawn++);
  assert.equal(sizeOf(canvas)[0], 0); // hidden
  width = 300;
  assert.deepEqual(sizeOf(canvas), [300, 50]); // shown, before it is laid out
  width = 400;
  changed();
  assert.equal(drawn, 1);
  asked = 0;
  assert.deepEqual(sizeOf(canvas), [400, 50]);
  assert.equal(asked, 0);
  width = 200;
  forgetSize(canvas);
  assert.deepEqual(sizeOf(canvas), [200, 50]);
  assert.equal(asked, 1);
  assert.deepEqual(sizeOf(canvas), [200, 50]);
  assert.equal(asked, 1);
  const other = /** @type {any} */ ({ clientWidth: 10, clientHeight: 20 });
  assert.deepEqual(sizeOf(other), [10, 20]); // not watched
});
