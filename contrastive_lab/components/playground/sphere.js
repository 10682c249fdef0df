// A sphere that turns under the pointer, with small images where the network puts them.

import { addProduct, matrix, turned } from "./product.js";
import { fromHex, GRAY, PALETTE, rgb, sizeCanvas, theme } from "../shared/canvas.js";
import { el } from "../shared/dom.js";
import { isStill } from "../shared/stage.js";

const COLORS = [...PALETTE.map(fromHex), GRAY, [15, 163, 177]],
  MOVE = 350, // milliseconds from one look of the training to the next
  IDLE = 0.00012, // radians a millisecond, until it is touched
  KEY = 0.15, // radians of a key
  TILE = 0.055, // side of an image, in radii
  DOT = 3, // pixels of one on the far side: images there cost a third of a frame
  NEAR = 12, // pixels around the pointer
  CARD = 72; // and of the image that is there

/** @import { Data } from "./training.js" */

/** Canvas and caption; `changed` asks for a frame. @type {(data: Data, classes: any, changed: () => void) => any} */
export function sphere(data, classes, changed) {
  const canvas = el("canvas", { tabindex: 0, role: "img" }),
    [height, width] = data.shape,
    n = data.images.length / height / width;
  /** @type {any} */
  const ball = {
    ...{ canvas, n, classes, labels: data.labels, height, width, across: Math.ceil(Math.sqrt(n)) },
    ...{ caption: el("figcaption", {}), from: null, to: null, since: 0, at: null },
    turn: Float32Array.of(1, 0, 0, 0, 1, 0, 0, 0, 1),
    isTouched: isStill(),
    isHeld: false,
  };
  ball.sheet = height > 1 && sheetOf(ball, data.images); // rows are dots
  rotate(ball, 0.4, -0.3);
  const turn = (across, down) => {
    ball.isTouched = true;
    rotate(ball, across, down);
    changed();
  };
  canvas.onpointerdown = (event) => {
    ball.isHeld = true;
    ball.at = [event.offsetX, event.offsetY];
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointermove = (event) => {
    const at = [event.offsetX, event.offsetY],
      before = ball.at ?? at;
    ball.at = at;
    if (ball.isHeld) turn(...at.map((v, k) => (v - before[k]) / radiusOf(canvas)));
    changed();
  };
  canvas.onpointerup = canvas.onpointercancel = () => (ball.isHeld = false);
  canvas.onpointerleave = () => {
    ball.at = null;
    changed();
  };
  canvas.onkeydown = (event) => {
    const by = { ArrowLeft: [-KEY, 0], ArrowRight: [KEY, 0], ArrowUp: [0, -KEY], ArrowDown: [0, KEY] }[event.key];
    if (!by) return;
    event.preventDefault();
    turn(...by);
  };
  return ball;
}

const radiusOf = (canvas) => 0.46 * Math.min(canvas.clientWidth, canvas.clientHeight);

/** Around the vertical, then around the horizontal of the screen. */
function rotate(ball, across, down) {
  const [c, s, e, f] = [Math.cos(across), Math.sin(across), Math.cos(down), Math.sin(down)],
    about = Float32Array.of(c, 0, s, -f * s, e, f * c, -e * s, -f, e * c);
  ball.turn = times(about, matrix(ball.turn, 0, 3));
}

/** Rows (n·3) times a matrix (3·3). */
function times(rows, T) {
  const found = new Float32Array(rows.length);
  addProduct(matrix(rows, 0, 3), T, matrix(found, 0, 3), [rows.length / 3, 3, 3]);
  return found;
}

/** The points move to new places (n·3). */
export function moveTo(ball, points) {
  ball.from = ball.to && !isStill() ? placesNow(ball, performance.now()) : points;
  ball.to = points;
  ball.since = performance.now();
}

function placesNow({ from, to, since }, now) {
  const t = Math.min(1, (now - since) / MOVE);
  return t >= 1 ? to : to.map((v, k) => from[k] + t * (v - from[k]));
}

/** Draws it, `passed` milliseconds after the last frame; returns whether it goes on moving. */
export function drawSphere(ball, now, passed) {
  const [g, width, height] = sizeCanvas(ball.canvas),
    radius = radiusOf(ball.canvas);
  if (!ball.to || radius < 1) return false;
  if (!ball.isTouched) rotate(ball, IDLE * passed, 0);
  const P = placesNow(ball, now),
    seen = times(P, turned(matrix(ball.turn, 0, 3))),
    order = Int32Array.from({ length: ball.n }, (_none, i) => i).sort((i, j) => seen[3 * i + 2] - seen[3 * j + 2]);
  g.strokeStyle = rgb(GRAY, 0.35);
  g.beginPath();
  g.arc(width / 2, height / 2, radius, 0, 2 * Math.PI);
  g.stroke();
  g.imageSmoothingEnabled = false;
  let nearest = -1,
    least = NEAR;
  for (const i of order) {
    const depth = seen[3 * i + 2],
      size = ball.sheet ? TILE * radius * (1 + 0.35 * depth) : 2 * DOT,
      x = width / 2 + radius * seen[3 * i],
      y = height / 2 - radius * seen[3 * i + 1];
    if (depth < 0) {
      g.fillStyle = rgb(colorOf(ball, i), 0.35);
      g.fillRect(x - DOT / 2, y - DOT / 2, DOT, DOT);
      continue;
    }
    drawSample(g, ball, i, x - size / 2, y - size / 2, size);
    const away = ball.at ? Math.hypot(x - ball.at[0], y - ball.at[1]) : Infinity;
    if (away <= least) [nearest, least] = [i, away];
  }
  if (nearest >= 0) drawCard(g, ball, nearest, width);
  return !ball.isTouched || now - ball.since < MOVE;
}

function drawSample(g, ball, i, x, y, size) {
  const { sheet, across, height, width } = ball;
  g.fillStyle = rgb(colorOf(ball, i));
  if (sheet) g.drawImage(sheet, (i % across) * width, Math.floor(i / across) * height, width, height, x, y, size, size);
  else g.fillRect(x, y, size, size);
}

/** The image under the pointer, larger, and its class. */
function drawCard(g, ball, i, width) {
  const x = Math.min(width - CARD - 8, Math.max(8, ball.at[0] + 12)),
    y = Math.max(8, ball.at[1] - CARD - 28),
    { ink, paper } = theme(ball.canvas),
    box = [x - 4, y - 4, CARD + 8, CARD + (ball.labels ? 24 : 8)];
  g.fillStyle = paper;
  g.fillRect(...box);
  g.strokeStyle = rgb(GRAY, 0.6);
  g.strokeRect(...box);
  drawSample(g, ball, i, x, y, CARD);
  g.fillStyle = ink;
  if (ball.labels) g.fillText(ball.classes[ball.labels[i]], x, y + CARD + 14, CARD);
}

const colorOf = ({ labels }, i) => (labels ? COLORS[labels[i] % COLORS.length] : GRAY);

/** All images in their class's color, in one canvas. */
function sheetOf(ball, images) {
  const { n, across, height, width } = ball,
    sheet = el("canvas", { width: across * width, height: Math.ceil(n / across) * height }),
    g = sheet.getContext("2d"),
    tile = g.createImageData(width, height);
  for (let i = 0; i < n; i++) {
    const color = colorOf(ball, i);
    for (let k = 0; k < width * height; k++)
      tile.data.set([...color, 255 * Math.min(1, images[i * width * height + k])], 4 * k);
    g.putImageData(tile, (i % across) * width, Math.floor(i / across) * height);
  }
  return sheet;
}
