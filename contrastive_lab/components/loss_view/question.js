// A lesson that asks for one of the bars: until it is chosen no color and no name gives it away.

import { say } from "../shared/dom.js";

/** @param {LossViewState} lab */
export function isAsked(lab) {
  const { lesson, done } = lab.lesson;
  return !done && Boolean(lesson?.wrong) && lab.anchor === lesson.first;
}

/**
 * A wrong answer leaves the anchor as it is, and is said to be wrong.
 *
 * @param {LossViewState} lab
 * @param {number} row that was chosen
 */
export function isWrong(lab, row) {
  if (!isAsked(lab)) return false;
  const name = lab.meta.names[row],
    wrong = lab.M[lab.anchor * lab.w + lab.meta.columnNames.indexOf(name)] !== 1;
  if (wrong) say(lab.lesson.said, lab.lesson.lesson.wrong.replace("{picked}", name));
  return wrong;
}
