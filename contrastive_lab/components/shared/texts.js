// Texts of rows as texts.py has them: in their own direction, with marked words, long ones folded.

import { el } from "./dom.js";
import { _ } from "./locale.js";

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const FIRST_LETTER = /\p{L}/u;

/**
 * The elements of a text.
 *
 * @param {{ pieces: string[], isLong: boolean }} text of which the pieces at odd places are words of a query
 */
export function said({ pieces, isLong }) {
  const words = pieces.map((piece, k) => (k % 2 ? el("mark", {}, piece) : piece)),
    fold = () => el("summary", {}, el("span", {}, _("Show all")), el("span", {}, _("Show less")));
  const parts = isLong ? [el("details", {}, fold())] : [];
  return el("div", { class: "said" }, el("p", { dir: "auto", lang: "" }, ...words), ...parts);
}

/**
 * A text for a place inside a sentence, where one that is written from right to left keeps its own direction.
 *
 * @param {string} text
 */
export const isolated = (text) => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text);

/**
 * Whether a text begins at its right end, by its first letter.
 *
 * @param {string} text
 */
export const isRightToLeft = (text) => RIGHT_TO_LEFT.test(text.match(FIRST_LETTER)?.[0] ?? "");
