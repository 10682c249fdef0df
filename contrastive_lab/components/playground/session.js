// The course of one training, or of twins from the same seed with the same batches: it answers messages, in a worker
// or, where there is none, in slices on the page.

import { unitRows } from "./network.js";
import { accuracy, advance, begin, embed, look, project } from "./training.js";

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
  let [seed, isRunning, isWaiting, due, raw] = [0, false, false, 0, NaN];
  /** @type {ReturnType<typeof begin>[]} */
  let sides = [],
    untrained = [];

  function restart() {
    sides = settings.map((setting) => begin(data, seed, setting));
    untrained = sides.map((side) => accuracy(embed(side), data));
    raw = accuracy(unitRows(sides[0].inputs, data.mean.length).Z, data);
    tell();
  }

  function tell() {
    const begun = performance.now(),
      told = sides.map((side, k) => {
        const { step: taken, loss, matter, same, setting } = side,
          Z = embed(side),
          of = { points: project(side, Z), knn: accuracy(Z, data), untrained: untrained[k] };
        return { step: taken, loss, matter, same, setting, ...of, ...look(side, settings[k], SHOWN) };
      });
    post({ kind: "state", sides: told, raw });
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

  /** Steps while it runs, or tells what has changed; messages come in between. */
  function again() {
    if (isWaiting) return;
    isWaiting = true;
    later(() => {
      isWaiting = false;
      if (!isRunning) return tell();
      step();
      again();
    });
  }

  return (message) => {
    if (message.kind === "set") {
      ({ settings } = message);
      const isOther = settings.length !== sides.length || settings.some((one, k) => one.dimensions !== sides[k].d);
      if (isOther)
        restart(); // both see the same batches
      else again();
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
