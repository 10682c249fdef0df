// The bars of the chosen anchor: its nearest candidates.

import { isHinge, ranked } from "./pairs.js";
import { thumb } from "./thumbnails.js";
import { BLUE, ORANGE, rgb, sizeCanvas } from "../shared/canvas.js";
import { number, say } from "../shared/dom.js";

const BAR = 22; // height of a bar in CSS pixels

/**
 * @param {LossViewState} lab
 */
export function drawBars(lab) {
  const [g, width, height] = sizeCanvas(lab.bars),
    at = lab.anchor * lab.w,
    hinge = isHinge(lab),
    rows = ranked(lab);
  const fit = Math.max(4, Math.floor(height / BAR));
  const from = (lab.barFrom = Math.max(0, Math.min(lab.barFrom || 0, rows.length - fit))),
    shown = rows.slice(from, from + fit);
  lab.barRows = shown;
  lab.turns.hidden = rows.length <= fit;
  lab.turns.children[0].disabled = from === 0;
  lab.turns.children[1].disabled = from + fit >= rows.length;
  lab.barFit = Math.max(1, height / BAR);
  const what = hinge
    ? `${lab.meta.scoreName}; pale: no longer moved`
    : lab.out
      ? "weight; +: positive"
      : lab.meta.scoreName;
  const which = from ? `its nearest ${from + 1} to ${from + shown.length}` : `the nearest ${shown.length}`;
  say(lab.barTitle, `Anchor ${lab.meta.names[lab.anchor] ?? ""}: ${which} of ${rows.length} (${what})`);
  const value = (j) => (hinge || !lab.out ? lab.S[at + j] : lab.out.pair[at + j]);
  const top = Math.max(1e-12, ...(from ? rows : shown).map((j) => Math.abs(value(j)))),
    left = lab.sprite ? BAR + 6 : 4;
  g.textBaseline = "middle";
  shown.forEach((j, k) => {
    const y = k * BAR,
      positive = lab.M[at + j] === 1,
      v = value(j),
      length = Math.max(1, (Math.abs(v) / top) * (width - left - 120));
    thumb(lab, g, lab.meta.columnThumb[j], 0, y + 1, BAR - 2);
    g.fillStyle = rgb(positive ? BLUE : ORANGE, hinge && lab.out && lab.out.pair[at + j] === 0 ? 0.3 : 1);
    g.fillRect(left, y + 3, length, BAR - 6);
    g.fillStyle = lab.ink;
    g.fillText(
      `${positive ? "+ " : ""}${v > 0 && v < 1e-4 ? "< 0.0001" : number(v)}  ${lab.meta.columnNames[j]}`,
      left + length + 5,
      y + BAR / 2,
    );
    if (lab.hover && lab.hover[1] === j) {
      g.strokeStyle = lab.accent;
      g.lineWidth = 2;
      g.strokeRect(1, y, width - 2, BAR);
    }
  });
  if (lab.stale || !lab.bars.hasAttribute("aria-label"))
    lab.bars.setAttribute(
      "aria-label",
      `${lab.barTitle.textContent}. Up, down, page up and page down walk through them.`,
    );
}
