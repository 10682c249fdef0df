// The course of one training, or of twins from the same seed with the same batches: it answers messages, in a worker
// or, where there is none, in slices on the page.

import { unitRows } from "./network.js";
import { accuracy, advance, begin, embed, look } from "./training.js";

/** @import { Data, Setting } from "./training.js" */

const EVERY = 350, // milliseconds between two looks at all images
  SHARE = 5, // of the time that a look takes, at least until the next one
  DIMENSIONS = 3,
  SHOWN = 6; // images whose views are shown

/**
 * @param {(message: any) => void} post
 * @returns {(message: any) => void} takes { kind: "start" with data, settings, seed; "set" with settings; "run" with
 *   running; "step"; "restart" with seed }
 */
export function session(post) {
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
    sides = settings.map(() => begin(data, seed, DIMENSIONS));
    untrained = accuracy(embed(sides[0]), data);
    tell();
  }

  function tell() {
    const begun = performance.now(),
      told = sides.map((side, k) => {
        const points = embed(side),
          { loss, matter, same } = side;
        return {
          points,
          step: side.step,
          loss,
          matter,
          same,
          knn: accuracy(points, data),
          ...look(side, settings[k], SHOWN),
        };
      });
    post({ kind: "state", sides: told, raw, untrained, isRunning });
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

  function tick() {
    isWaiting = false;
    if (!isRunning) return;
    step();
    again();
  }

  function again() {
    if (isRunning && !isWaiting) {
      isWaiting = true;
      setTimeout(tick); // messages come in between
    }
  }

  /** A twin that is new starts over with the other one, so that both have seen the same batches. */
  function set(given) {
    const isOther = given.length !== settings.length;
    settings = given;
    if (isOther) restart();
  }

  return (message) => {
    if (message.kind === "start") {
      ({ data, seed, settings } = message);
      raw = accuracy(unitRows(data.images, data.side ** 2).Z, data);
      restart();
    } else if (message.kind === "set") set(message.settings);
    else if (message.kind === "step") step();
    else if (message.kind === "restart") {
      seed = message.seed;
      restart();
    } else if (message.kind === "run") {
      isRunning = message.running;
      again();
    }
  };
}
