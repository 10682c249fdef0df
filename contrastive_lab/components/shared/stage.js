// A picture that fills the stage of a page, the buttons in its middle, and the inspector beside it.

import { el, say } from "./dom.js";
import { _ } from "./locale.js";

/**
 * The element of the class `lab` that holds both.
 *
 * @param {any[]} picture
 * @param {any[]} inspector
 */
export function stageOf(picture, inspector) {
  const parts = [el("div", { class: "picture" }, ...picture), el("div", { class: "inspector" }, ...inspector)];
  return el("div", { class: "lab" }, el("div", { class: "staged" }, ...parts));
}

/**
 * A large button that runs and pauses, and under it small ones: a step, and from the start.
 *
 * @param {{ toggle: () => void, step: () => void, restart: () => void }} then
 * @param {string} restart the last one's name
 * @param {string} hint
 */
export function playButtons(then, restart, hint) {
  const icon = (look, name, onclick) =>
    el("button", { type: "button", class: look, title: name, "aria-label": name, onclick });
  const run = icon("run", _("Run"), then.toggle),
    small = el("div", { class: "group" }, icon("step", _("Step"), then.step), icon("again", restart, then.restart));
  return { run, root: el("div", { class: "play" }, run, small, el("p", {}, hint)) };
}

/**
 * @param {any} run the large button
 * @param {boolean} isRunning
 */
export function showRunning(run, isRunning) {
  const name = isRunning ? _("Pause") : _("Run");
  if (run.title === name) return;
  run.title = name;
  run.setAttribute("aria-label", name);
  run.parentElement.classList.toggle("running", isRunning);
}

/** Whether nothing may move by itself: then a run shows its end alone. */
export const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** A field or a slider with its name before it. */
export function setting(name, ...controls) {
  return el("label", { class: "setting" }, el("span", {}, name), ...controls);
}

/**
 * The button of the next step.
 *
 * @param {() => void} onclick
 */
export const forwardOf = (onclick) => el("button", { type: "button", class: "forward", onclick });

/**
 * What it says; without a next step it is away.
 *
 * @param {any} button
 * @param {{ text: string } | null | undefined} step
 */
export function showForward(button, step) {
  button.hidden = !step;
  say(button, step?.text ?? "");
}

/**
 * What can be saved, each with its button, and the way to real images.
 *
 * @param {() => void} onward
 * @param {Record<string, () => void>} saves
 */
export function footOf(onward, saves) {
  const all = Object.entries(saves).map(([name, onclick]) => el("button", { type: "button", onclick }, name)),
    forward = forwardOf(onward);
  forward.append(_("See it on real images"));
  return el("div", { class: "foot" }, el("span", { class: "group" }, ...all), forward);
}
