// A strip of maps of the same rows over time: a slider goes through them, and play lets the points move from each to
// the next. Nothing of it waits for the server.

import { glide, placeBetween } from "./side_by_side.js";
import { schedule } from "./view.js";
import { el } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const REST = 300; // milliseconds between two moves

/** @param {ScatterState} map */
export function epochStrip(map) {
  const play = el("button", { type: "button" }),
    slider = el("input", { type: "range", min: 0, step: 1, "aria-label": _("epoch of the map") }),
    name = el("output", {});
  const strip = Object.assign(el("div", { class: "epochs", hidden: "" }, play, slider, name), { play, slider, name });
  slider.oninput = () => {
    strip.plays = false;
    goTo(map, Number(slider.value));
  };
  play.onclick = () => {
    strip.plays = !strip.plays;
    label(strip);
    if (strip.plays) next(map);
  };
  return strip;
}

/**
 * Take over the maps of all epochs; the newest is shown, unless a person looks at another. Gives all their places.
 *
 * @param {ScatterState} map
 * @param {Uint8Array | undefined} frames
 */
export function loadEpochs(map, frames) {
  const strip = map.epochs,
    { rowsKey, frameNames = [] } = map.meta,
    count = frameNames.length;
  strip.hidden = count < 2;
  if (strip.hidden || !frames) return undefined;
  const all = new Float32Array(frames.slice().buffer),
    looksBack = strip.rowsKey === rowsKey && (strip.plays || strip.at < strip.frames.length - 1),
    kept = looksBack ? frameNames.indexOf(strip.names[strip.at]) : -1;
  strip.frames = frameNames.map((name, k) => all.subarray((k * all.length) / count, ((k + 1) * all.length) / count));
  strip.plays = looksBack && strip.plays;
  Object.assign(strip, { rowsKey, names: frameNames, at: kept < 0 ? count - 1 : kept });
  map.xy.set(strip.frames[strip.at]);
  strip.slider.max = String(count - 1);
  label(strip);
  if (strip.plays) next(map);
  return all;
}

function label(strip) {
  strip.slider.value = String(strip.at);
  strip.name.textContent = strip.names[strip.at];
  strip.slider.setAttribute("aria-valuetext", strip.names[strip.at]);
  strip.play.textContent = strip.plays ? "❚❚" : "▶";
  strip.play.setAttribute("aria-label", strip.plays ? _("pause") : _("play the epochs"));
}

/** The epoch after the one that is shown, or the first after the last, and then the others one by one. */
function next(map) {
  const strip = map.epochs;
  clearTimeout(strip.timer);
  if (!strip.plays || !map.root.isConnected) return;
  goTo(map, (strip.at + 1) % strip.frames.length, () => {
    strip.plays &&= strip.at < strip.frames.length - 1;
    label(strip);
    strip.timer = setTimeout(() => next(map), REST);
  });
}

function goTo(map, at, then = () => {}) {
  const strip = map.epochs,
    from = map.xy.slice();
  strip.at = at;
  label(strip);
  const show = (share) => {
    placeBetween(map, from, strip.frames[at], share);
    schedule(map, true);
  };
  glide(map, 0, show, then);
}
