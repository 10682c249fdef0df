// One frame of a star: rings of equal similarity, the images, and an arrow for what each gets.

import { ease, radiusOf } from "./layout.js";
import { MOVE, lay, swell, watchStrongest } from "./scene.js";
import { BLUE, ORANGE, rgb, sizeCanvas } from "../shared/canvas.js";
import { percent } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const NAMED = 0.03, // share of the push above which an image says it
  RINGS = [0.8, 0.5, 0.2], // similarities with a circle
  RING_TEXT = 2.2, // radians: where a circle says its similarity
  TOLD = 40, // pixels of an image, where a circle has room to say its similarity
  ARROW = { least: 0.3, most: 1.5, thin: 0.04, thick: 0.27 }; // lengths and widths in tiles, without push and with all

/**
 * @param {any} scene of scene.js
 * @param {ArrayLike<number>} forces of each column: its share of the push, or below 0 of the pull
 * @param {{ sprite?: any, across: number, tile: number }} sheet the pictures
 * @param {{ ink: string, paper: string, accent: string }} colors
 */
export function drawScene(scene, forces, sheet, colors) {
  const [g, width, height] = sizeCanvas(scene.canvas);
  if (!width || !height || !scene.batch) return;
  lay(scene, width, height);
  watchStrongest(scene, forces);
  const t = ease((performance.now() - scene.moved) / MOVE);
  g.translate(scene.center[0], scene.center[1]);
  drawRings(scene, g, colors);
  for (const image of scene.images) {
    const to = [image.radius * Math.cos(image.angle), image.radius * Math.sin(image.angle)],
      from = scene.before.get(image.column) ?? [0, 0];
    image.now = scene.held?.column === image.column ? scene.held.at : to.map((v, k) => from[k] + (v - from[k]) * t);
    image.force = forces[image.column];
    image.isNamed = image.isPositive || image.force > NAMED;
    drawLine(g, image);
  }
  const pictures = { scene, g, sheet };
  for (const image of [...scene.images].sort((a, b) => a.force - b.force)) drawImage(pictures, image);
  drawPicture(pictures, scene.batch.picture, [0, 0], 2.1 * scene.tile, colors.ink, 3);
  for (const image of scene.images) drawLabel(scene, g, image, colors);
  drawMark(scene, g, colors.accent);
}

/** The image under the pointer, or that keys have marked. */
function drawMark({ images, marked, tile }, g, color) {
  const image = images.find(({ column }) => column === marked);
  if (!image) return;
  g.strokeStyle = color;
  g.lineWidth = 3;
  g.strokeRect(image.now[0] - tile / 2 - 4, image.now[1] - tile / 2 - 4, tile + 8, tile + 8);
}

function drawRings({ scale, ring, tile }, g, { ink, accent }) {
  const circle = (radius) => {
    g.beginPath();
    g.arc(0, 0, radius, 0, 2 * Math.PI);
  };
  if (ring !== null) {
    circle(radiusOf(ring, scale));
    g.fillStyle = rgb(ORANGE, 0.1);
    g.fill();
    g.strokeStyle = accent;
    g.lineWidth = 3;
    g.stroke();
  }
  g.strokeStyle = g.fillStyle = ink;
  g.lineWidth = 1;
  RINGS.forEach((similarity, k) => {
    const radius = radiusOf(similarity, scale);
    g.globalAlpha = 0.25;
    g.setLineDash([2, 4]);
    circle(radius);
    g.stroke();
    g.setLineDash([]);
    if (tile < TOLD) return;
    g.globalAlpha = 0.7;
    const text = k ? String(similarity) : _("similarity {s}", { s: similarity });
    g.fillText(text, radius * Math.cos(RING_TEXT) - 4, radius * Math.sin(RING_TEXT) + 12);
  });
  g.globalAlpha = 1;
}

/** From the anchor to an image, as strong as what it gets. */
function drawLine(g, { now, force }) {
  const share = Math.abs(force);
  g.strokeStyle = rgb(force < 0 ? BLUE : ORANGE, 0.12 + 0.5 * share);
  g.lineWidth = 1 + (force < 0 ? 4 : 8) * share;
  g.beginPath();
  g.moveTo(0, 0);
  g.lineTo(now[0], now[1]);
  g.stroke();
}

/** A filled arrow along the ray (a, b) from the middle, which begins so far `from` it. */
function fatArrow(g, color, { from, a, b }, length, width) {
  const x = from * a,
    y = from * b;
  const head = Math.min(length, 2 * width),
    neck = length - head,
    sides = [
      [0, width / 2],
      [neck, width / 2],
      [neck, width / 2 + 0.4 * head],
      [length, 0],
    ];
  const outline = [
    ...sides,
    ...sides
      .slice(0, 3)
      .reverse()
      .map(([along, across]) => [along, -across]),
  ];
  g.fillStyle = color;
  g.beginPath();
  for (const [along, across] of outline) g.lineTo(x + along * a - across * b, y + along * b + across * a);
  g.fill();
}

function drawImage({ scene, g, sheet }, { column, now, force, isPositive, isNamed }) {
  const { tile } = scene,
    far = Math.hypot(now[0], now[1]) || 1,
    [a, b] = [now[0] / far, now[1] / far],
    edge = tile * 0.62,
    share = Math.abs(force);
  g.globalAlpha = isNamed ? 1 : 0.45;
  if (force < 0) {
    const length = Math.max(12, far - edge - 1.15 * tile); // up to the anchor
    fatArrow(g, rgb(BLUE), { from: edge - far, a: -a, b: -b }, length, tile * (0.04 + 0.12 * Math.sqrt(share)));
  } else if (force > 0) {
    const length = tile * (ARROW.least + (ARROW.most - ARROW.least) * share),
      width = tile * (ARROW.thin + (ARROW.thick - ARROW.thin) * Math.sqrt(share));
    fatArrow(g, rgb(ORANGE), { from: far + edge, a, b }, length, width);
  }
  g.globalAlpha = isNamed ? 1 : 0.6;
  const rim = rgb(isPositive ? BLUE : ORANGE, isNamed ? 1 : 0);
  const side = column === scene.strongest ? tile * swell(scene) : tile;
  drawPicture({ g, sheet }, scene.batch.pictures[column], now, side, rim, 2.5);
  g.globalAlpha = 1;
}

/** What an image gets, below it, on whatever lies there. */
function drawLabel({ tile }, g, { now, force, isNamed }, { ink, paper }) {
  if (!isNamed || !force) return;
  const text = force === -1 ? _("pull") : percent(Math.abs(force)),
    y = now[1] + tile / 2 + 16;
  g.save();
  g.font = "600 14px 'Source Sans', 'Source Sans Pro', sans-serif";
  g.textAlign = "center";
  g.lineJoin = "round";
  g.lineWidth = 4;
  g.strokeStyle = paper;
  g.strokeText(text, now[0], y);
  g.fillStyle = ink;
  g.fillText(text, now[0], y);
  g.restore();
}

function drawPicture({ g, sheet }, picture, [x, y], side, rim, width) {
  const { sprite, across, tile } = sheet;
  if (sprite) {
    g.imageSmoothingEnabled = tile > side;
    const left = (picture % across) * tile,
      top = Math.floor(picture / across) * tile;
    g.drawImage(sprite, left, top, tile, tile, x - side / 2, y - side / 2, side, side);
  }
  g.strokeStyle = rim;
  g.lineWidth = width;
  g.strokeRect(x - side / 2, y - side / 2, side, side);
}
