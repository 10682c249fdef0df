// What can be set, its ranges, and a setting as an address holds it.

import { N_ } from "../shared/locale.js";

/** @import { Setting } from "./training.js" */

export const LOSSES = {
  nt_xent: "NT-Xent",
  sup_con: N_("SupCon, with labels"),
  info_nce: N_("InfoNCE with a queue"),
  triplet: N_("Triplet, with labels"),
  vicreg: "VICReg",
  simsiam: "SimSiam",
};

/**
 * Sliders: the label, the range, and the losses that have it; null: all.
 *
 * @type {Record<string, [string, any, string[] | null]>}
 */
export const KNOBS = {
  temperature: [N_("τ, temperature"), { low: 0.01, high: 2, log: true }, ["nt_xent", "sup_con", "info_nce"]],
  margin: [N_("m, margin"), { low: 0, high: 2, log: false }, ["triplet"]],
  rate: [N_("η, learning rate"), { low: 1e-4, high: 1, log: true }, null],
};
export const BATCHES = [8, 16, 32, 64, 128, 256];
export const STRENGTHS = {
  move: N_("move and turn"),
  contrast: N_("contrast"),
  noise: N_("noise"),
  erase: N_("erase a square"),
};

/** @type {Setting} */
export const FIRST = {
  loss: "nt_xent",
  temperature: 0.2,
  margin: 0.5,
  batch: 128,
  rate: 0.003,
  stopGradient: true,
  strengths: { move: 0.5, contrast: 0.5, noise: 0.5, erase: 0.5 },
};

/**
 * Whether a loss has a slider.
 *
 * @param {string} name
 * @param {Setting} setting
 */
export function hasKnob(name, { loss }) {
  const of = KNOBS[name][2];
  return !of || of.includes(loss);
}

/**
 * Settings of one or two sides and a seed as a text, and back; what is not in range is the default.
 *
 * @param {Setting[]} settings
 * @param {number} seed
 */
export function written(settings, seed) {
  return JSON.stringify([seed, ...settings.map(({ strengths, ...rest }) => ({ ...rest, ...strengths }))]);
}

/** @param {string} text */
export function readSettings(text) {
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
    settings: (settings.length ? settings : [{}]).map(settingOf),
  };
}

function settingOf(side) {
  const within = (name, low, high, first) =>
    typeof side[name] === "number" && side[name] >= low && side[name] <= high ? side[name] : first;
  const setting = { ...FIRST, strengths: { ...FIRST.strengths } };
  if (Object.hasOwn(LOSSES, side.loss)) setting.loss = side.loss;
  if (BATCHES.includes(side.batch)) setting.batch = side.batch;
  if (side.stopGradient === false) setting.stopGradient = false;
  for (const [name, [, { low, high }]] of Object.entries(KNOBS)) setting[name] = within(name, low, high, setting[name]);
  for (const name of Object.keys(STRENGTHS)) setting.strengths[name] = within(name, 0, 1, FIRST.strengths[name]);
  return setting;
}

/**
 * What differs between two settings, in short.
 *
 * @param {Setting} own
 * @param {Setting} other
 * @returns {string[]}
 */
export function differing(own, other) {
  const found = [];
  if (own.loss !== other.loss) found.push("loss");
  for (const name of Object.keys(KNOBS)) if (own[name] !== other[name] && hasKnob(name, own)) found.push(name);
  if (own.batch !== other.batch) found.push("batch");
  if (own.stopGradient !== other.stopGradient && own.loss === "simsiam") found.push("stopGradient");
  for (const name of Object.keys(STRENGTHS)) if (own.strengths[name] !== other.strengths[name]) found.push(name);
  return found;
}
