// The course of one training, or of twins from the same seed with the same batches: it answers messages, in a worker
// or, where there is none, in slices on the page.

import { unitRows } from "./network.js";
import { accuracy, advance, begin, embed, look } from "./training.js";

/** @import { Data } from "./training.js" */
/** @import { Setting } from "./setting.js" */

const EVERY = 350, // milliseconds between two looks at all images
  SHARE = 5, // of the time that a look takes, at least until the next one
  SHOWN = 6; // images whose views are shown

/**
 * @param {(message: any) => void} post
 * @param {(then: () => void) => void} [later] soon calls back
 * @returns {(message: any) => void} takes { kind: "start" with data, settings, seed; "set" with settings; "run" with
 *   running; "step"; "restart" with seed }
 */
export function session(post, later = setTimeout) {
  /** @type {Data} */
  let data = null;
  /** @type {Setting[]} */
  let settings = [];
  let seed = 0,
    isRunning = false,
    isWaiting = false,
    due = 0,
    untrained = NaN,
    raw = NaN;
  /** @type {ReturnType<typeof begin>[]} */
  let sides = [];

  function restart() {
    sides = settings.map(() => begin(data, seed));
    untrained = accuracy(embed(sides[0]), data);
    raw = accuracy(unitRows(sides[0].inputs, data.mean.length).Z, data);
    tell();
  }

  function tell() {
    const begun = performance.now(),
      told = sides.map((side, k) => {
        const points = embed(side),
          { step: taken, loss, matter, same } = side,
          knn = accuracy(points, data);
        return { points, step: taken, loss, matter, same, knn, ...look(side, settings[k], SHOWN) };
      });
    post({ kind: "state", sides: told, raw, untrained });
    const ended = performance.now();
    due = ended + Math.max(EVERY, SHARE * (ended - begun));
  }

  function step() {
    for (const [k, side] of sides.entries())
      if (!advance(side, settings[k])) {
        isRunning = false;
        post({ kind: "broken", side: k });
        return tell();
      }
    if (!isRunning || performance.now() > due) tell();
  }

  /** Steps while it runs; messages come in between. */
  function again() {
    if (!isRunning || isWaiting) return;
    isWaiting = true;
    later(() => {
      isWaiting = false;
      if (isRunning) step();
      again();
    });
  }

  return (message) => {
    if (message.kind === "set") {
      const hadTwin = settings.length > 1;
      ({ settings } = message);
      if (hadTwin !== settings.length > 1) restart(); // both have seen the same batches
    } else if (message.kind === "step") step();
    else if (message.kind === "run") {
      isRunning = message.running;
      again();
    } else {
      ({ data = data, settings = settings, seed } = message);
      restart();
    }
  };
}
