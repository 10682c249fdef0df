// Pointer, keys and slider of the live loss view.

import { choose, light, report } from "./drag.js";
import { cellAt } from "./matrix.js";
import { isAcross, partnersOf, ranked } from "./pairs.js";
import { isWrong } from "./question.js";

/** @param {LossViewState} lab */
export function listen(lab) {
  const { matrix, bars } = lab;
  const leave = (e) => {
    if (e.pointerType !== "touch") light(lab, null);
  }; // a finger that was lifted still points
  matrix.onpointermove = matrix.onpointerdown = (e) => light(lab, cellAt(lab, e));
  matrix.onpointerleave = bars.onpointerleave = leave;
  matrix.onclick = (e) => {
    const c = cellAt(lab, e); // whole pixels, unlike a touch: at an edge it may be the next cell
    if (!c || c[0] === null) return;
    lab.candidate = c[1];
    choose(lab, c[0], false);
    report(lab);
    light(lab, c);
  };
  matrix.onkeydown = (e) => matrixKeys(lab, e);
  matrix.onkeyup = () => {
    if (lab.movedByKey) {
      lab.movedByKey = false;
      report(lab);
    }
  };
  bars.onpointermove = bars.onpointerdown = (e) => {
    const j = lab.barRows[Math.floor((e.offsetY / bars.clientHeight) * lab.barFit)];
    light(lab, j === undefined ? null : [lab.anchor, j]);
  };
  bars.onclick = () => follow(lab);
  bars.onkeydown = (e) => {
    if (e.key === "Enter") return follow(lab);
    const all = ranked(lab),
      fit = lab.barStep,
      step = { ArrowDown: 1, ArrowUp: -1, PageDown: fit, PageUp: -fit }[e.key];
    if (!step || !fit) return;
    e.preventDefault();
    const to = Math.min(all.length - 1, Math.max(0, (lab.hover ? all.indexOf(lab.hover[1]) : -1) + step));
    lab.barFrom = Math.min(to, Math.max(lab.barFrom, to - fit + 1));
    light(lab, [lab.anchor, all[to]]);
  };
}

/**
 * The candidate that is lit becomes the anchor, where it is one; of two towers its partner does.
 *
 * @param {LossViewState} lab
 */
export function follow(lab) {
  const row = lab.hover && lab.hover[1] !== null ? anchorOf(lab, lab.hover[1]) : -1;
  if (row < 0 || isWrong(lab, row)) return; // a wrong answer stays pointed at
  choose(lab, row, true);
  light(lab, [row, null]);
}

function anchorOf(lab, j) {
  if (isAcross(lab)) return partnersOf(lab, null, j)[0] ?? -1;
  return lab.meta.names.indexOf(lab.meta.columnNames[j]);
}

/**
 * @param {LossViewState} lab
 * @param {any} e
 */
export function matrixKeys(lab, e) {
  if (e.key === "Enter") return follow(lab);
  const rows = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -lab.n, End: lab.n }[e.key];
  const columns = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!rows && !columns) return;
  e.preventDefault();
  const move = (order, at, step) => order[Math.min(order.length - 1, Math.max(0, order.indexOf(at) + step))];
  if (rows) {
    choose(lab, move(lab.rows, lab.anchor, rows), false);
    lab.movedByKey = true;
  }
  light(lab, [
    lab.anchor,
    columns ? move(lab.columns, lab.hover ? lab.hover[1] : lab.columns[0], columns) : lab.hover ? lab.hover[1] : null,
  ]);
}
