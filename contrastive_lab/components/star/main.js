// Home's star: an anchor image in the middle, its other view and its negatives around it. Distance is dissimilarity,
// which a temperature never moves; the arrow is the share of the push. It glides by itself until it is touched.

import { drawScene } from "./draw.js";
import { effective, glide, pushShares } from "./layout.js";
import { aim, buildScene, isMoving } from "./scene.js";
import { theme } from "../shared/canvas.js";
import { el, percent, say } from "../shared/dom.js";
import { knobPair, knobText, toSlider } from "../shared/knob.js";
import { _ } from "../shared/locale.js";
import { inApp, partOf } from "../shared/part.js";
import { isStill } from "../shared/stage.js";

const KNOB = /** @type {any} */ ({ low: 0.02, high: 2, log: true }),
  RESTING = 0.2, // the temperature where nothing moves
  ANOTHER = 20_000, // milliseconds with one anchor, while nobody touches it
  LAST = 120_000; // after which it rests

export const mount = partOf(
  "_star",
  build,
  () => {},
  schedule,
  (star) => star.drops.abort(),
);

export default inApp(mount);

function build(data, host) {
  const { meta } = data,
    still = isStill();
  /** @type {any} */
  const star = {
    meta,
    n: meta.classes.length,
    S: new Float32Array(data.scores.slice().buffer),
    M: data.mask,
    pictures: meta.classes.map((_name, row) => row),
    sheet: { ...meta.thumbnails },
    isAlone: !still,
    isDragged: false,
    value: still ? RESTING : glide(0),
    begun: performance.now(),
    turn: 0,
    presses: 0,
  };
  star.touched = () => {
    star.isAlone = false;
    star.root.classList.add("touched");
  };
  star.scene = buildScene({
    redraw: () => schedule(star),
    touched: star.touched,
    choose: (row) => {
      star.touched();
      choose(star, row);
      schedule(star);
    },
    pull: (row, similarity) => pull(star, row, similarity),
  });
  star.root = el("div", { class: "star" }, el("div", { class: "stage" }, star.scene.canvas), wordsOf(star, host));
  star.slider.value = toSlider(KNOB, star.value);
  star.slider.onpointerdown = star.touched;
  listenForFiles(star);
  const places = new Float32Array(data.places.slice().buffer);
  choose(star, meta.anchors[0], new Map(star.pictures.map((row) => [row, places.slice(2 * row, 2 * row + 2)])));
  createImageBitmap(new Blob([data.thumbnails], { type: "image/png" })).then((sprite) => {
    star.sheet.sprite = sprite;
    schedule(star);
  });
  return star;
}

/** The headline, the knob, what it does, and the buttons that lead on. */
function wordsOf(star, host) {
  const span = (text, kind = "") => el("span", { class: kind }, text);
  Object.assign(
    star,
    knobPair(() => KNOB, turns(star)),
  );
  star.slider.setAttribute("aria-label", _("τ, temperature"));
  star.readout.setAttribute("aria-label", _("τ, as a number"));
  for (const name of ["first", "second", "third"])
    star[name] = el(name === "first" ? "strong" : "span", { class: name });
  const said = { class: "sentence", role: "status", "aria-live": "polite" };
  star.sentence = el("p", said, star.first, " ", star.second, " ", star.third);
  const press = (button) => () => host.report("chosen", { presses: ++star.presses, button });
  const about = _(
    "Choose a temperature and a method for your own images, find out which of two encoders is better, and find wrong " +
      "labels. Everything runs on your computer.",
  );
  star.note = el("small", {});
  return el(
    "div",
    { class: "words" },
    el("div", { class: "about" }, el("h2", {}, _("Train, compare and check contrastive encoders")), el("p", {}, about)),
    el("p", { class: "lead" }, _("One number, τ, decides which images a contrastive loss pushes apart:")),
    el("div", { class: "knob" }, span("τ"), star.slider, star.readout),
    el("div", { class: "ends" }, span(_("hardest only")), span(_("Drag me"), "hint"), span(_("all equally"))),
    star.sentence,
    el(
      "div",
      { class: "buttons" },
      ...star.meta.buttons.map((text, k) => el("button", { type: "button", onclick: press(k) }, text)),
    ),
    star.note,
  );
}

/** What the knob does: while it is held, the sentence is not read out. */
function turns(star) {
  const turned = (isDragged) => {
    star.isDragged = isDragged;
    schedule(star);
  };
  return {
    turn: (value) => {
      star.touched();
      star.value = value;
      turned(true);
    },
    told: () => turned(false),
  };
}

/** While a file is dragged over the page, the page's field for files covers it (home.css). */
function listenForFiles(star) {
  star.drops = new AbortController();
  const show = (isShown) => document.body.toggleAttribute("data-dropping", isShown),
    on = (name, then) => addEventListener(name, then, { signal: star.drops.signal });
  on("dragenter", (e) => e.dataTransfer?.types.includes("Files") && show(true));
  on("dragleave", (e) => e.relatedTarget === null && show(false));
  on("drop", () => show(false));
}

/** `from`: places that the images come from. */
function choose(star, anchor, from) {
  const row = (all) => all.slice(anchor * star.n, (anchor + 1) * star.n);
  Object.assign(star, { anchor, scores: row(star.S) });
  aim(star.scene, { scores: row(star.S), mask: row(star.M), pictures: star.pictures, picture: anchor }, from);
  say(
    star.note,
    _(
      "{source}: distance is dissimilarity, the arrow is the share of the push. " +
        "Click an image to make it the anchor, or drag it.",
      { source: star.meta.source },
    ),
  );
}

/** An image is dragged: it gets what its new distance gives. Let go (row -1), the encoder's similarity holds again. */
function pull(star, row, similarity) {
  star.isDragged = row >= 0;
  star.scores = star.scene.batch.scores.slice();
  if (row >= 0) star.scores[row] = similarity;
  else say(star.note, _("It springs back: the encoder sets the distances, and only training changes them."));
  schedule(star);
}

/** One frame, and the next as long as something moves. */
function schedule(star) {
  star.frame ||= requestAnimationFrame(() => {
    star.frame = 0;
    if (!star.root.isConnected) return;
    if (star.isAlone) byItself(star, performance.now() - star.begun);
    draw(star);
    if (star.isAlone || isMoving(star.scene)) schedule(star);
  });
}

function draw(star) {
  const { scene, scores, value } = star,
    words = star.root.querySelector(".words"),
    negatives = star.pictures.filter((row) => scene.batch.mask[row] === 2),
    shares = pushShares(scores, negatives, value),
    forces = Float32Array.from(scene.batch.mask, (role) => (role === 1 ? -1 : 0));
  negatives.forEach((row, k) => (forces[row] = shares[k]));
  scene.left = getComputedStyle(words).position === "absolute" ? words.offsetLeft + words.offsetWidth : 0;
  drawScene(scene, forces, star.sheet, theme(star.root));
  tell(star, negatives, shares);
}

/** Nobody has touched it: the temperature glides, and now and then another anchor comes. */
function byItself(star, time) {
  const turn = Math.floor(time / ANOTHER);
  if (turn !== star.turn) {
    star.turn = turn;
    choose(star, star.meta.anchors[turn % star.meta.anchors.length]);
  }
  star.value = time < LAST ? glide(time) : RESTING;
  star.isAlone = time < LAST;
  star.slider.value = toSlider(KNOB, star.value);
}

/** What the loss does at this temperature, in words. */
function tell(star, negatives, shares) {
  const most = shares.indexOf(Math.max(...shares)),
    { classes } = star.meta,
    name = classes[negatives[most]],
    tau = knobText(Number(star.value.toPrecision(2)));
  if (star.readout.value !== tau && !star.readout.matches(":focus")) star.readout.value = tau;
  say(star.first, _("At τ = {tau}, one {name} gets {share} of the push.", { tau, name, share: percent(shares[most]) }));
  say(
    star.second,
    name === classes[star.anchor]
      ? _("It is another {name}: a false negative.", { name })
      : _("The anchor is a {anchor}: this is a hard negative.", { anchor: classes[star.anchor] }),
  );
  const counts = { count: effective(shares).toFixed(0), n: shares.length };
  say(star.third, _("{count} of {n} negatives matter.", counts));
  star.sentence.setAttribute("aria-busy", String(star.isAlone || star.isDragged)); // read out once it rests
  star.scene.canvas.setAttribute(
    "aria-label",
    _("{sentence} Arrow keys mark an image, Enter makes it the anchor.", { sentence: star.sentence.textContent }),
  );
}
