// The images around an anchor on one canvas: who stands where, and what a hand or a key does to them. Home hosts one,
// and any view of a batch can: `aim` says which anchor, `drawScene` (draw.js) draws a frame with who gets how much.

import { chosen, places, radiusOf, similarityAt } from "./layout.js";
import { el } from "../shared/dom.js";
import { isStill } from "../shared/stage.js";

const WIDE = 600, // pixels of the stage above which it shows more images
  MANY = [12, 20], // negatives on a narrow and on a wide stage
  TILE = [26, 60], // pixels of an image, least and most
  WAIT = 300, // milliseconds in which one sees where images come from
  CLICK = 5, // pixels that a click may move
  NEAR_RING = 12; // pixels beside the ring where it can be taken

export const MOVE = 700; // milliseconds from one place to another
const PULSE = { lasts: 300, grows: 0.25 }; // of the strongest negative, once: milliseconds, and by how much of its side

/**
 * A canvas with images around an anchor. `host` hears of what is done to it: `redraw()` when a frame is due, `choose`
 * of an image that becomes the anchor, `pull` of one that is dragged (-1: let go), `turn` of a ring that is dragged.
 *
 * @param {{ redraw: () => void, touched?: () => void, choose: (column: number) => void,
 *   pull?: (column: number, similarity: number) => void, turn?: (similarity: number, isDone: boolean) => void }} host
 */
export function buildScene(host) {
  /** @type {any} */
  const scene = {
    host,
    canvas: el("canvas", { tabindex: 0, role: "img" }),
    still: isStill(),
    images: [],
    marked: -1,
    held: null,
    ring: null,
    pulsed: -Infinity,
    left: 0, // pixels at the left that words cover
    bottom: 0, // pixels that controls cover
    laid: "",
  };
  listen(scene);
  return scene;
}

/**
 * Look from another anchor: the images move to their places around it.
 *
 * @param {any} scene
 * @param {{ scores: ArrayLike<number>, mask: ArrayLike<number>, pictures: ArrayLike<number>, picture: number }} batch
 *   of one anchor: of each column its similarity, its role (1 positive, 2 negative) and its picture; its own picture
 * @param {Map<number, number[]>} [from] places that columns come from, in half canvases
 */
export function aim(scene, batch, from) {
  Object.assign(scene, { batch, from, marked: -1, held: null, laid: "", strongest: undefined });
  settle(scene, from ? WAIT : 0);
}

/** From where they are, the images move to where they belong, after some milliseconds. */
function settle(scene, wait = 0) {
  scene.before = new Map(scene.images.map((image) => [image.column, image.now]));
  scene.moved = scene.still ? -MOVE : performance.now() + wait;
}

/** Whether images are still on their way, or one swells. */
export function isMoving(scene) {
  return performance.now() - scene.moved < MOVE || swell(scene) > 1;
}

/** Find the negative that gets most of the push; it swells once where it is another one than before. */
export function watchStrongest(scene, forces) {
  const before = scene.strongest,
    pushed = scene.images.map(({ column }) => column).filter((column) => forces[column] > 0);
  scene.strongest = pushed.reduce((best, column) => (forces[column] > forces[best] ? column : best), pushed[0]);
  if (before !== undefined && scene.strongest !== before) pulse(scene);
}

export function pulse(scene) {
  if (!scene.still) scene.pulsed = performance.now();
}

/** How large the strongest negative is drawn now, 1 at rest. */
export function swell({ pulsed }) {
  const part = (performance.now() - pulsed) / PULSE.lasts;
  return part < 1 ? 1 + PULSE.grows * Math.sin(Math.PI * Math.max(0.01, part)) : 1;
}

/** The images and their places, found anew for another anchor and another size in pixels. */
export function lay(scene, width, height) {
  const { batch, left } = scene,
    high = height - scene.bottom,
    laid = `${width} ${high} ${left}`;
  if (scene.laid === laid) return;
  const size = Math.min(width - left, high),
    tile = Math.max(TILE[0], Math.min(TILE[1], size / 13)),
    { positives, negatives, shown } = chosen(batch.scores, batch.mask, MANY[Number(width - left >= WIDE)]),
    columns = [...positives, ...shown],
    similarity = columns.map((column) => batch.scores[column]),
    least = Math.min(...similarity, 0),
    inner = 1.9 * tile + 12, // a page that is being laid out may leave no room between them
    scale = { inner, outer: Math.max(inner + tile, size / 2 - 0.8 * tile - 16), least, tile: 1.25 * tile },
    at = places(similarity, scale);
  const center = [(left + width) / 2, high / 2];
  for (const [column, [x, y]] of scene.from ?? []) scene.before.set(column, [(x * size) / 2, (y * size) / 2]);
  scene.images = columns.map((column, k) => ({ column, isPositive: k < positives.length, ...at[k], now: [0, 0] }));
  Object.assign(scene, { laid, negatives, tile, scale, center });
}

/**
 * A place of the canvas, from the middle of the anchor.
 *
 * @returns {[number, number]}
 */
function fromCenter({ center }, e) {
  return [e.offsetX - center[0], e.offsetY - center[1]];
}

/** The image at a place; undefined where there is none. */
function imageAt(scene, [x, y]) {
  return scene.images.find(({ now }) => Math.max(Math.abs(now[0] - x), Math.abs(now[1] - y)) < scene.tile / 2 + 4);
}

function isOnRing(scene, [x, y]) {
  if (scene.ring === null || !scene.host.turn) return false;
  return Math.abs(Math.hypot(x, y) - radiusOf(scene.ring, scene.scale)) < NEAR_RING;
}

function listen(scene) {
  const { canvas, host } = scene;
  const over = (e) => scene.center && (imageAt(scene, fromCenter(scene, e)) || isOnRing(scene, fromCenter(scene, e)));
  canvas.onpointerdown = (e) => {
    if (!over(e) || e.button) return;
    const at = fromCenter(scene, e);
    host.touched?.();
    scene.grip = { at, image: imageAt(scene, at), moved: false };
    canvas.setPointerCapture(e.pointerId);
  };
  canvas.onpointermove = (e) => {
    if (!scene.center) return;
    if (scene.grip) drag(scene, fromCenter(scene, e));
    else {
      scene.marked = imageAt(scene, fromCenter(scene, e))?.column ?? -1;
      canvas.style.cursor = over(e) ? "grab" : "";
    }
    host.redraw();
  };
  canvas.onpointerup = canvas.onpointercancel = (e) => {
    const { grip } = scene;
    scene.grip = null;
    if (grip) letGo(scene, grip, e.type === "pointerup");
  };
  canvas.onpointerleave = () => {
    scene.marked = -1;
    host.redraw();
  };
  // a finger that takes an image drags it; elsewhere it scrolls the page
  const hold = (e) => scene.grip && e.cancelable && e.preventDefault();
  canvas.addEventListener("touchmove", hold, { passive: false });
  canvas.onkeydown = (e) => {
    const columns = scene.images.map((image) => image.column),
      step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (step) scene.marked = columns[(columns.indexOf(scene.marked) + step + columns.length) % columns.length];
    else if (e.key === "Enter" && scene.marked >= 0) host.choose(scene.marked);
    else return;
    e.preventDefault();
    host.touched?.();
    host.redraw();
  };
}

function drag(scene, at) {
  const { grip, host, scale } = scene;
  grip.moved ||= Math.hypot(at[0] - grip.at[0], at[1] - grip.at[1]) > CLICK;
  if (!grip.moved) return;
  const similarity = similarityAt(Math.hypot(...at), scale);
  if (!grip.image) host.turn(similarity, false);
  else if (host.pull) {
    scene.held = { column: grip.image.column, at };
    host.pull(grip.image.column, similarity);
  }
}

function letGo(scene, { image, moved }, isUp) {
  if (!image) scene.host.turn(scene.ring, true);
  else if (scene.held) {
    scene.held = null;
    settle(scene);
    scene.host.pull(-1, 0);
  } else if (!moved && isUp) scene.host.choose(image.column);
  scene.host.redraw();
}
