// A lesson beside a live view: its task, how far one is, and what was seen once it is done.

import { choices, el, say } from "./dom.js";
import { gaugeOf, judge } from "./lesson_checks.js";

const FRAME = 304; // pixels of a frame of the stamp

/**
 * The panel, empty as long as there is no lesson. `send` tells the host what was pressed, and that a goal was met.
 *
 * @param {(pressed: { go?: number, set?: Record<string, string>, press?: number }) => void} send
 */
export function buildLesson(send) {
  /** @type {any} */
  const panel = { send, lesson: null, done: false, met: [], first: [], taken: [], pressed: {}, presses: 0 };
  panel.title = el("h2", { id: "lesson-title" });
  panel.task = el("p", { class: "task" });
  panel.question = el("p", { class: "question", id: "lesson-question" });
  panel.choices = el("div", { class: "bar", hidden: "" });
  panel.goals = el("p", { class: "goals" });
  panel.gauge = el("div", { class: "gauge", "aria-hidden": "true" }, el("i", { class: "zone" }), el("i", {}));
  panel.said = el("p", { class: "said", role: "status", "aria-live": "polite" });
  panel.captions = [0, 1].map(() => el("figcaption", {}));
  panel.frames = panel.captions.map(() => el("canvas", { width: FRAME, height: FRAME, "aria-hidden": "true" }));
  panel.stamp = el("figure", { class: "stamp", hidden: "" }, ...panel.frames, ...panel.captions);
  panel.buttons = el("div", { class: "bar steps" });
  panel.root = el(
    "section",
    { class: "lesson", tabindex: -1, hidden: "", "aria-labelledby": "lesson-title" },
    ...["title", "task", "question", "choices", "goals", "gauge", "stamp", "said", "buttons"].map((k) => panel[k]),
  );
  panel.root.setAttribute("aria-describedby", "lesson-question");
  return panel;
}

/**
 * What the server keeps of a lesson: its number, and what each goal that was met read; `isDone` once all were.
 *
 * @param {any} panel
 */
export function doneOf({ lesson, met, done }) {
  return lesson && met.length ? { number: lesson.number, met: Array.from(met, (now) => now ?? null), isDone: done } : 0;
}

/**
 * Show a lesson; the same one may come again and again, with other settings chosen.
 *
 * @param {any} panel
 * @param {any} lesson as lesson_panel.py gives it, or null
 */
export function showLesson(panel, lesson) {
  const first = !panel.lesson && lesson;
  if (!lesson || panel.lesson?.number !== lesson.number) away(panel, false);
  panel.lesson = lesson || null;
  panel.root.hidden = !lesson;
  panel.root.parentElement?.classList.toggle("taught", Boolean(lesson));
  if (!lesson) return;
  for (const name of ["title", "task", "question"]) say(panel[name], lesson[name]);
  if (panel.presses > lesson.heard)
    // an older answer may not take back what was pressed
    for (const choice of lesson.choices) choice.chosen = panel.pressed[choice.name];
  panel.choices.hidden = !lesson.choices.length;
  const focused = panel.root.getRootNode().activeElement?.dataset.choice;
  panel.choices.replaceChildren(...lesson.choices.map((choice) => group(panel, choice)));
  // at once: a key pressed before the next frame would be lost
  if (focused) panel.choices.querySelector(`[data-choice="${focused}"]`)?.focus();
  if (!first) return;
  lesson.met.forEach((now, k) => {
    if (now !== null) panel.met[k] = now;
  });
  drawSteps(panel);
  if (lesson.finished) say(panel.said, lesson.words.before);
  if (lesson.focus) requestAnimationFrame(() => panel.root.getRootNode().activeElement || panel.root.focus());
}

/** A setting of the page as buttons. All settings are told: a second press may replace the report of the first. */
function group(panel, choice) {
  const { name, label, options, chosen } = choice;
  const buttons = choices(options, chosen, (value) => {
    choice.chosen = value;
    panel.pressed = Object.fromEntries(panel.lesson.choices.map((c) => [c.name, c.chosen]));
    panel.send({ set: panel.pressed, press: ++panel.presses });
  });
  for (const b of buttons) b.dataset.choice = `${name}-${b.dataset.key}`;
  return el("span", { class: "group", role: "group", "aria-label": label }, el("span", {}, label), ...buttons);
}

function drawSteps(panel) {
  const { number, words, next, play } = panel.lesson,
    button = (text, go) => el("button", { type: "button", onclick: () => leave(panel, go) }, text);
  const forward = button(next.text, next.number);
  forward.className = "forward";
  const steps = [button(words.again, number)];
  if (number > 1) steps.unshift(button(words.back, number - 1));
  if (play) steps.push(button(play.text, play.number));
  panel.forward = forward;
  panel.buttons.replaceChildren(forward, ...steps);
}

/** The server takes a moment to begin another: that it was asked for is seen at once. */
function leave(panel, go) {
  if (panel.root.classList.contains("leaving")) return;
  away(panel, true);
  if (go) say(panel.said, panel.lesson.words.opening);
  panel.send({ go });
}

function away(panel, leaving) {
  panel.root.classList.toggle("leaving", leaving);
  panel.root.setAttribute("aria-busy", String(leaving));
}

/**
 * Look at the state at each frame: a goal that is reached while nothing is dragged is met, and stays met. A value that
 * is only passed on the way does not count.
 *
 * @param {any} panel
 * @param {() => any} factsOf the state; asked for only while there is a lesson
 * @param {Record<string, HTMLElement>} regions parts of the picture by name
 * @param {boolean} [isDragged]
 */
export function checkLesson(panel, factsOf, regions, isDragged) {
  const { lesson, met } = panel;
  if (!lesson) return;
  const facts = factsOf(),
    each = judge(lesson.checks, facts),
    before = met.filter(Boolean).length;
  if (panel.root.classList.contains("leaving")) return;
  each.forEach(({ holds, now }, k) => {
    if (now !== "–") panel.first[k] ??= now;
    if (holds && !isDragged) met[k] = now;
  });
  panel.done = each.every((_check, k) => met[k] !== undefined);
  if (panel.done) say(panel.said, `${lesson.words.done} ${lesson.said.replace("{hardest}", facts.hardest || "–")}`);
  const shown = each.map(({ now }, k) => (now === "–" ? (met[k] ?? now) : now));
  const mark = (k) => (met[k] === undefined && !each[k].holds ? "" : " ✓");
  say(panel.goals, lesson.goals.map((text, k) => text.replace("{now}", shown[k]) + mark(k)).join("\n"));
  showGauge(panel, facts);
  showStamp(panel, each);
  panel.root.classList.toggle("done", panel.done);
  panel.forward.hidden = !panel.done && !lesson.finished;
  for (const [name, node] of Object.entries(regions)) {
    node.classList.toggle("asked", lesson.region.includes(name));
    node.classList.toggle("lit", !panel.done && lesson.region.includes(name));
    if (lesson.region[0] === name) node.dataset.finger = panel.done ? "" : lesson.finger;
  }
  if (met.filter(Boolean).length > before) panel.send({});
}

/** From now to the goal, of the first goal that is not met. */
function showGauge({ gauge, lesson, met, done }, facts) {
  const open = lesson.checks.findIndex((_check, k) => met[k] === undefined),
    found = gaugeOf(lesson.checks[done ? lesson.checks.length - 1 : open], facts);
  gauge.hidden = !found;
  if (!found) return;
  const [zone, bar] = gauge.children;
  Object.assign(zone.style, { left: `${100 * found.from}%`, width: `${100 * (found.to - found.from)}%` });
  bar.style.width = `${100 * found.now}%`;
}

/** Two frames: the picture as it was at first, and as it is when the lesson is done. */
function showStamp(panel, each) {
  const { taken, first, met, lesson } = panel,
    isBegun = each.some(({ now }, k) => now !== "–" && now !== first[k]),
    last = lesson.checks.length - 1;
  if (panel.done ? !taken[1] : !isBegun) taken[Number(panel.done)] = takeFrame(panel, Number(panel.done));
  panel.stamp.hidden = !(taken[0] && taken[1]);
  [first[last], met[last]].forEach((now, k) => say(panel.captions[k], /\d/.test(now) ? now : ""));
}

/** The largest canvas of the view, made small; whether there is one. */
function takeFrame({ root, frames }, k) {
  const all = [...(root.closest(".lab")?.querySelectorAll("canvas") ?? [])].filter((c) => !frames.includes(c)),
    size = (c) => c.clientWidth * c.clientHeight,
    picture = all.sort((a, b) => size(b) - size(a))[0];
  if (!picture?.width || !size(picture)) return false;
  const side = Math.min(picture.width, picture.height),
    from = [(picture.width - side) / 2, (picture.height - side) / 2, side, side],
    g = frames[k].getContext("2d");
  g.clearRect(0, 0, FRAME, FRAME);
  g.drawImage(picture, ...from, 0, 0, FRAME, FRAME);
  return true;
}
