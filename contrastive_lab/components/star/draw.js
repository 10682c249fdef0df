// One frame of a star: rings of equal similarity, the images, and an arrow for what each gets.

import { ease, freePlace, pointOf, radiusOf } from "./layout.js";
import { MOVE, lay, swell, watchStrongest } from "./scene.js";
import { BLUE, ORANGE, rgb, sizeCanvas } from "../shared/canvas.js";
import { percent } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const NAMED = 0.03, // share of the push above which an image says it
  RINGS = [0.8, 0.5, 0.2], // similarities with a circle
  RING_TEXT = 2.2, // radians: where a circle says its similarity, or as near to it as nothing lies
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
    const to = pointOf(image),
      from = scene.before.get(image.column) ?? [0, 0];
    image.now = scene.held?.column === image.column ? scene.held.at : to.map((v, k) => from[k] + (v - from[k]) * t);
    image.force = forces[image.column];
    image.isNamed = image.isPositive || image.force > NAMED;
    drawLine(g, image);
  }
  const pictures = { scene, g, sheet };
  for (const image of [...scene.images].sort((a, b) => a.force - b.force)) drawImage(pictures, image);
  drawPicture(pictures, scene.batch.picture, [0, 0], 2.1 * scene.tile, colors.ink, 3);
  const boxes = [
    [0, 0, 2.1 * scene.tile + 24, 2.1 * scene.tile + 24],
    ...scene.images.flatMap((one) => boxesOf(scene, one)),
  ];
  const labels = [];
  for (const image of scene.images) drawLabel(scene, g, image, colors, { boxes, labels });
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

function drawRings({ scale, ring, tile, images }, g, { ink, accent }) {
  const taken = images.map((one) => [...pointOf(one), tile + 40, tile + 48]); // with what they get, and their arrows
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
  g.textAlign = "center";
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
    const angles = Array.from({ length: 40 }, (_one, n) => RING_TEXT + (n % 2 ? -1 : 1) * Math.ceil(n / 2) * 0.15),
      places = angles.map((angle) => pointOf({ radius: radius + 10, angle })),
      wide = g.measureText(text).width,
      at = freePlace(places, [wide, 16], taken);
    if (!at) return;
    g.fillText(text, at[0], at[1] + 4);
    taken.push([...at, wide + 48, 48]); // two of them stand apart
  });
  g.textAlign = "start";
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

/** A filled arrow along a ray. */
function fatArrow(g, color, { from, a, b, length }, width) {
  const head = Math.min(length, 2 * width),
    [side, barb, end] = [width / 2, width / 2 + 0.4 * head, from + length],
    half = [[from, side], [end - head, side], [end - head, barb], [end, 0]]; // prettier-ignore
  g.fillStyle = color;
  g.beginPath();
  for (const sign of [1, -1])
    for (const [along, across] of sign > 0 ? half : half.slice(0, 3).reverse())
      g.lineTo(along * a - sign * across * b, along * b + sign * across * a);
  g.fill();
}

/** An image's arrow: along which ray, and from where how long; that of a pull reaches up to the anchor. */
function arrowOf({ tile }, { now, force }) {
  const far = Math.hypot(now[0], now[1]) || 1,
    way = force < 0 ? -1 : 1,
    edge = tile * 0.62,
    pushed = tile * (ARROW.least + (ARROW.most - ARROW.least) * force),
    length = force < 0 ? Math.max(12, far - edge - 1.15 * tile) : pushed;
  return { from: way * far + edge, a: (way * now[0]) / far, b: (way * now[1]) / far, length };
}

/** What an image and its arrow take: boxes of middle, width and height. */
function boxesOf(scene, image) {
  const { from, a, b, length } = arrowOf(scene, image),
    step = scene.tile / 3,
    along = Array.from({ length: image.force ? 1 + Math.ceil(length / step) : 0 }, (_one, n) => from + n * step);
  return [[...image.now, scene.tile, scene.tile], ...along.map((far) => [far * a, far * b, step, step])];
}

function drawImage({ scene, g, sheet }, image) {
  const { column, now, force, isPositive, isNamed } = image,
    { tile } = scene,
    [color, thin, thick] = force < 0 ? [BLUE, 0.04, 0.16] : [ORANGE, ARROW.thin, ARROW.thick],
    arrow = arrowOf(scene, image);
  g.globalAlpha = isNamed ? 1 : 0.45;
  if (force) fatArrow(g, rgb(color), arrow, tile * (thin + (thick - thin) * Math.sqrt(Math.abs(force))));
  g.globalAlpha = isNamed ? 1 : 0.6;
  const rim = rgb(isPositive ? BLUE : ORANGE, isNamed ? 1 : 0);
  const side = column === scene.strongest ? tile * swell(scene) : tile;
  drawPicture({ g, sheet }, scene.batch.pictures[column], now, side, rim, 2.5);
  g.globalAlpha = 1;
}

/** What an image gets, below it, or on another side where no image and no arrow lies; never over another label. */
function drawLabel({ tile }, g, { now, force, isNamed }, { ink, paper }, { boxes, labels }) {
  if (!isNamed || !force) return;
  g.save();
  g.font = "600 14px 'Source Sans', 'Source Sans Pro', sans-serif";
  const text = force === -1 ? _("pull") : percent(Math.abs(force)),
    wide = g.measureText(text).width + 4,
    [down, across] = [tile / 2 + 12, (tile + wide) / 2 + 4],
    around = [[0, down], [0, -down], [across, 0], [-across, 0]], // prettier-ignore
    sides = around.map(([right, below]) => [now[0] + right, now[1] + below]),
    isFree = (taken) => freePlace(sides, [wide, 14], taken),
    place = isFree([...boxes, ...labels]) ?? isFree(labels);
  if (!place) return g.restore();
  const [x, y] = place;
  labels.push([x, y, wide, 14]);
  g.textAlign = "center";
  g.lineJoin = "round";
  g.lineWidth = 4;
  g.strokeStyle = paper;
  g.strokeText(text, x, y + 5);
  g.fillStyle = ink;
  g.fillText(text, x, y + 5);
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
