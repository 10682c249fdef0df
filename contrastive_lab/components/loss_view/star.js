// The chosen anchor as a star: the scene of the front page, with the push of whatever loss is shown.

import { drag, light, report, schedule } from "./drag.js";
import { follow } from "./events.js";
import { shares } from "./gradients.js";
import { isFar, isHinge, marginOf } from "./pairs.js";
import { isAsked } from "./question.js";
import { drawScene } from "../star/draw.js";
import { toSlider } from "../shared/knob.js";
import { aim, buildScene, isMoving } from "../star/scene.js";

/** @param {LossViewState} lab */
export function buildStar(lab) {
  lab.scene = buildScene({
    redraw: () => light(lab, lab.scene.marked < 0 ? null : [lab.anchor, lab.scene.marked]),
    choose: (column) => {
      lab.hover = [lab.anchor, column];
      follow(lab);
    },
    turn: (similarity, isDone) => turn(lab, similarity, isDone),
  });
  lab.scene.canvas.className = "starry";
  return lab.scene.canvas;
}

/** How much of a similarity a score counts: the scene has none above 1, and distances stand as far as they are. */
function scaleOf(lab) {
  const most = Math.max(lab.range[1], 1e-12);
  return isFar(lab) || most > 1.001 ? 1 / most : 1;
}

/** The anchor's row as the scene takes it; while a lesson asks for the other view, nothing tells it apart. */
function batchOf(lab) {
  const { rowThumbs, columnThumbs } = lab.meta,
    at = lab.anchor * lab.w,
    scale = scaleOf(lab),
    mask = lab.M.slice(at, at + lab.w);
  return {
    scores: lab.S.slice(at, at + lab.w).map((s) => (isFar(lab) ? 1 - s * scale : s * scale)),
    mask: isAsked(lab) ? mask.map((role) => (role === 1 ? 2 : role)) : mask,
    pictures: columnThumbs,
    picture: rowThumbs[lab.anchor],
  };
}

/** The ring of the margin is dragged: the margin is what lies between it and where it begins. */
function turn(lab, similarity, isDone) {
  const { low, high } = lab.meta.knob,
    margin = (1 - similarity) / scaleOf(lab) - (lab.kernel.form === "triplet" ? marginOf(lab).from : 0);
  if (!isDone) drag(lab, Math.min(high, Math.max(low, margin)), 0);
  lab.slider.value = toSlider(lab.meta.knob, lab.value);
  if (isDone) report(lab);
}

/** Each candidate's share of the push, or below 0 of the pull. */
function forcesOf(lab) {
  const { out, w, M } = lab,
    forces = new Float32Array(w),
    at = lab.anchor * w;
  if (!out || isAsked(lab)) return forces;
  const push = shares(lab).total,
    isPulled = (j) => out.grad[at + j] < 0 !== isFar(lab);
  let pull = 0;
  for (let j = 0; j < w; j++) if (M[at + j] === 1 && isPulled(j)) pull += Math.abs(out.grad[at + j]);
  for (let j = 0; j < w; j++) {
    const size = Math.abs(out.grad[at + j]);
    if (size && isPulled(j)) forces[j] = pull ? -size / pull : 0;
    else if (M[at + j] === 1 || M[at + j] === 2) forces[j] = push ? Math.min(1, size / push) : 0;
  }
  return forces;
}

/** @param {LossViewState} lab */
export function drawStar(lab) {
  const { scene } = lab,
    of = `${lab.key} ${lab.anchor} ${isAsked(lab)}`;
  if (scene.of !== of) {
    scene.of = of;
    aim(scene, batchOf(lab));
  }
  scene.marked = lab.hover?.[1] ?? -1;
  scene.bottom = scene.canvas.clientHeight - lab.picture.clientHeight;
  scene.ring = isHinge(lab) && isFar(lab) ? 1 - marginOf(lab).at * scaleOf(lab) : null;
  drawScene(scene, forcesOf(lab), { sprite: lab.sprite, ...lab.meta.thumbnails }, lab);
  if (isMoving(scene)) schedule(lab);
}
