// What can be set, its ranges, and a setting as an address holds it.

import { N_ } from "../shared/locale.js";

export const LOSSES = {
  nt_xent: "NT-Xent",
  sup_con: N_("SupCon, with labels"),
  info_nce: N_("InfoNCE with a queue"),
  triplet: N_("Triplet, with labels"),
  vicreg: "VICReg",
  simsiam: "SimSiam",
};

const SHARE = { low: 0, high: 1, log: false };

/** Sliders: the label, the range. @type {Record<string, [string, any]>} */
export const KNOBS = {
  temperature: [N_("τ, temperature"), { low: 0.01, high: 2, log: true }],
  margin: [N_("m, margin"), { low: 0, high: 2, log: false }],
  rate: [N_("η, learning rate"), { low: 1e-4, high: 1, log: true }],
  move: [N_("move and turn"), SHARE],
  contrast: [N_("contrast"), SHARE],
  noise: [N_("noise"), SHARE],
  erase: [N_("erase a square"), SHARE],
};
export const OF_VIEWS = ["move", "contrast", "noise", "erase"];

/** Lists: the label, the values. @type {(hasLabels: boolean) => Record<string, [string, any[]]>} */
export const lists = (hasLabels) => ({
  loss: [N_("Loss"), Object.keys(LOSSES).filter((name) => hasLabels || !["sup_con", "triplet"].includes(name))],
  stopGradient: [N_("stop-gradient"), [true, false]],
  batch: [N_("Batch size"), [8, 16, 32, 64, 128, 256]],
  dimensions: [N_("Dimensions"), [3, 32]], // of the embedding
});

// losses that use a setting; all use the others
const USED_BY = {
  temperature: ["nt_xent", "sup_con", "info_nce"],
  margin: ["triplet"],
  stopGradient: ["simsiam"],
};

export const FIRST = {
  loss: "nt_xent",
  temperature: 0.2,
  margin: 0.5,
  stopGradient: true,
  rate: 0.003,
  batch: 128,
  dimensions: 3,
  move: 0.5,
  contrast: 0.5,
  noise: 0.5,
  erase: 0.5,
};

/** @typedef {typeof FIRST} Setting */

/** Whether a loss uses a setting. @type {(name: string, setting: Setting) => boolean} */
export const isUsed = (name, { loss }) => USED_BY[name]?.includes(loss) ?? true;

/**
 * A seed and the settings of one or two sides from what an address holds: JSON of a list of them. What is not in range
 * is the default.
 *
 * @param {string} text
 * @param {boolean} hasLabels
 */
export function readSettings(text, hasLabels) {
  let given = [];
  try {
    given = [].concat(JSON.parse(text));
  } catch {
    // an address that somebody wrote
  }
  const [seed, ...sides] = given,
    settings = sides.filter((side) => side && typeof side === "object").slice(0, 2);
  return {
    seed: Number.isInteger(seed) && seed >= 0 && seed < 1e6 ? seed : 0,
    settings: (settings.length ? settings : [{}]).map((side) => {
      const setting = { ...FIRST };
      for (const [name, [, values]] of Object.entries(lists(hasLabels)))
        if (values.includes(side[name])) setting[name] = side[name];
      for (const [name, [, { low, high }]] of Object.entries(KNOBS))
        if (typeof side[name] === "number" && side[name] >= low && side[name] <= high) setting[name] = side[name];
      return setting;
    }),
  };
}

/** Names of what differs between two settings. */
export function differing(own, other) {
  return Object.keys(FIRST).filter((name) => own[name] !== other[name] && isUsed(name, own));
}
