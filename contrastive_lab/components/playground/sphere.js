// A sphere that turns under the pointer, with small images where the network puts them.

import { fromHex, GRAY, PALETTE, rgb, sizeCanvas } from "../shared/canvas.js";
import { el } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

export const COLORS = [...PALETTE.map(fromHex), GRAY, [15, 163, 177]];

const MOVE = 350, // milliseconds from one look of the training to the next
  IDLE = 0.00012, // radians a millisecond, until it is touched
  KEY = 0.15, // radians of a key
  TILE = 0.055, // side of an image, in radii
  NEAR = 12; // pixels around the pointer

/**
 * @param {{ images: Float32Array, labels: Uint8Array, side: number }} data
 * @param {() => void} changed asks for a frame
 */
export function sphere(data, changed) {
  const canvas = el("canvas", { tabindex: 0, role: "img" });
  /** @type {any} */
  const ball = {
    canvas,
    data,
    sheet: sheetOf(data),
    turn: [1, 0, 0, 0, 1, 0, 0, 0, 1],
    from: null,
    to: null,
    since: 0,
    isTouched: matchMedia("(prefers-reduced-motion: reduce)").matches,
    isStill: matchMedia("(prefers-reduced-motion: reduce)").matches,
    isHeld: false,
    at: null,
  };
  rotate(ball, 0.4, -0.3);
  canvas.onpointerdown = (event) => {
    ball.isHeld = ball.isTouched = true;
    ball.at = [event.offsetX, event.offsetY];
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointermove = (event) => {
    const at = [event.offsetX, event.offsetY],
      radius = radiusOf(canvas);
    if (ball.isHeld && ball.at) rotate(ball, (at[0] - ball.at[0]) / radius, (at[1] - ball.at[1]) / radius);
    ball.at = at;
    changed();
  };
  canvas.onpointerup = canvas.onpointercancel = () => {
    ball.isHeld = false;
  };
  canvas.onpointerleave = () => {
    ball.at = null;
    changed();
  };
  canvas.onkeydown = (event) => {
    const by = { ArrowLeft: [-KEY, 0], ArrowRight: [KEY, 0], ArrowUp: [0, -KEY], ArrowDown: [0, KEY] }[event.key];
    if (!by) return;
    event.preventDefault();
    ball.isTouched = true;
    rotate(ball, by[0], by[1]);
    changed();
  };
  return ball;
}

const radiusOf = (canvas) => 0.46 * Math.min(canvas.clientWidth, canvas.clientHeight);

/** Around the vertical, then around the horizontal of the screen. */
function rotate(ball, across, down) {
  const [c, s, e, f] = [Math.cos(across), Math.sin(across), Math.cos(down), Math.sin(down)],
    [a, b, g] = [0, 3, 6].map((k) => ball.turn.slice(k, k + 3)),
    x = a.map((v, k) => c * v + s * g[k]),
    z = a.map((v, k) => -s * v + c * g[k]),
    y = b.map((v, k) => e * v + f * z[k]),
    w = b.map((v, k) => -f * v + e * z[k]);
  ball.turn = [...x, ...y, ...w];
}

/**
 * The points move to new places.
 *
 * @param {any} ball
 * @param {Float32Array} points (n·3)
 */
export function moveTo(ball, points) {
  ball.from = ball.to && !ball.isStill ? placesNow(ball, performance.now()) : points;
  ball.to = points;
  ball.since = performance.now();
}

function placesNow({ from, to, since }, now) {
  const t = Math.min(1, (now - since) / MOVE);
  return t >= 1 ? to : to.map((v, k) => from[k] + t * (v - from[k]));
}

/**
 * Draws it; returns whether it goes on moving.
 *
 * @param {any} ball
 * @param {number} now
 * @param {number} passed milliseconds since the last frame
 */
export function drawSphere(ball, now, passed) {
  const [g, width, height] = sizeCanvas(ball.canvas),
    radius = radiusOf(ball.canvas);
  if (!ball.to || radius < 1) return false;
  if (!ball.isTouched) rotate(ball, IDLE * passed, 0);
  const P = placesNow(ball, now),
    T = ball.turn,
    n = P.length / 3,
    seen = new Float32Array(3 * n),
    order = Int32Array.from({ length: n }, (_none, i) => i);
  for (let i = 0; i < n; i++)
    for (let k = 0; k < 3; k++)
      seen[3 * i + k] = T[3 * k] * P[3 * i] + T[3 * k + 1] * P[3 * i + 1] + T[3 * k + 2] * P[3 * i + 2];
  order.sort((i, j) => seen[3 * i + 2] - seen[3 * j + 2]);
  g.strokeStyle = rgb(GRAY, 0.35);
  g.beginPath();
  g.arc(width / 2, height / 2, radius, 0, 2 * Math.PI);
  g.stroke();
  g.imageSmoothingEnabled = false;
  const { side } = ball.data,
    across = ball.sheet.width / side;
  let nearest = -1,
    least = NEAR;
  for (const i of order) {
    const depth = seen[3 * i + 2],
      size = TILE * radius * (1 + 0.35 * depth),
      x = width / 2 + radius * seen[3 * i],
      y = height / 2 - radius * seen[3 * i + 1];
    g.globalAlpha = depth > 0 ? 1 : 0.3 + 0.25 * (1 + depth);
    const [sx, sy] = [(i % across) * side, Math.floor(i / across) * side];
    g.drawImage(ball.sheet, sx, sy, side, side, x - size / 2, y - size / 2, size, size);
    const away = ball.at && depth > 0 ? Math.hypot(x - ball.at[0], y - ball.at[1]) : Infinity;
    if (away <= least) [nearest, least] = [i, away];
  }
  g.globalAlpha = 1;
  if (nearest >= 0) drawCard(g, ball, nearest, width);
  return !ball.isTouched || now - ball.since < MOVE;
}

/** The image under the pointer, larger, and its class. */
function drawCard(g, ball, i, width) {
  const { side, labels } = ball.data,
    across = ball.sheet.width / side,
    size = 72,
    x = Math.min(width - size - 8, Math.max(8, ball.at[0] + 12)),
    y = Math.max(8, ball.at[1] - size - 28),
    style = getComputedStyle(ball.canvas);
  g.fillStyle = style.getPropertyValue("--st-background-color") || "#fff";
  g.fillRect(x - 4, y - 4, size + 8, size + 24);
  g.strokeStyle = rgb(GRAY, 0.6);
  g.strokeRect(x - 4, y - 4, size + 8, size + 24);
  g.drawImage(ball.sheet, (i % across) * side, Math.floor(i / across) * side, side, side, x, y, size, size);
  g.fillStyle = style.color;
  g.fillText(_("labeled {label}", { label: labels[i] }), x, y + size + 14);
}

/** All images in their class's color, in one canvas. */
function sheetOf({ images, labels, side }) {
  const n = labels.length,
    across = Math.ceil(Math.sqrt(n)),
    sheet = document.createElement("canvas");
  sheet.width = across * side;
  sheet.height = Math.ceil(n / across) * side;
  const g = sheet.getContext("2d"),
    tile = g.createImageData(side, side);
  for (let i = 0; i < n; i++) {
    const color = COLORS[labels[i] % COLORS.length];
    for (let k = 0; k < side * side; k++) {
      tile.data.set(color, 4 * k);
      tile.data[4 * k + 3] = 255 * Math.min(1, images[i * side * side + k]);
    }
    g.putImageData(tile, (i % across) * side, Math.floor(i / across) * side);
  }
  return sheet;
}
