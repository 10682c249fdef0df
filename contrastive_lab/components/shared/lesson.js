// A lesson beside a live view: what is asked, how far one is, and what was seen once it is done.

import { choices, el, say } from "./dom.js";
import { judge } from "./lesson_checks.js";

/**
 * The panel, empty as long as there is no lesson. `send` tells the host what was pressed.
 *
 * @param {(pressed: { go?: number, set?: Record<string, string>, press?: number }) => void} send
 */
export function buildLesson(send) {
  /** @type {any} */
  const panel = { send, lesson: null, done: false, met: [], pressed: {}, presses: 0 };
  panel.title = el("h2", { id: "lesson-title" });
  panel.question = el("p", { class: "question", id: "lesson-question" });
  panel.choices = el("div", { class: "bar", hidden: "" });
  panel.goals = el("p", { class: "goals" });
  panel.said = el("p", { class: "said", role: "status", "aria-live": "polite" });
  panel.buttons = el("div", { class: "bar steps" });
  panel.root = el(
    "section",
    { class: "lesson", tabindex: -1, hidden: "", "aria-labelledby": "lesson-title" },
    panel.title,
    panel.question,
    panel.choices,
    panel.goals,
    panel.said,
    panel.buttons,
  );
  panel.root.setAttribute("aria-describedby", "lesson-question");
  return panel;
}

/**
 * The number of the lesson that is done; 0 for none.
 *
 * @param {any} panel
 */
export function doneOf(panel) {
  return panel.done && panel.lesson ? panel.lesson.number : 0;
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
  say(panel.title, lesson.title);
  say(panel.question, lesson.question);
  if (panel.presses > lesson.heard)
    // an older answer may not take back what was pressed
    for (const choice of lesson.choices) choice.chosen = panel.pressed[choice.name];
  panel.choices.hidden = !lesson.choices.length;
  const focused = panel.root.getRootNode().activeElement?.dataset.choice;
  panel.choices.replaceChildren(...lesson.choices.map((choice) => group(panel, choice)));
  // at once: a key pressed before the next frame would be lost
  if (focused) panel.choices.querySelector(`[data-choice="${focused}"]`)?.focus();
  if (!first) return;
  drawSteps(panel);
  if (lesson.focus) requestAnimationFrame(() => panel.root.getRootNode().activeElement || panel.root.focus());
}

/**
 * A setting of the page as buttons. All settings are told: a second press may replace the report of the first.
 */
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
  const { number, words, next } = panel.lesson,
    button = (text, go) => el("button", { type: "button", onclick: () => leave(panel, go) }, text);
  const forward = next ? button(words.next.replace("{title}", next), number + 1) : button(words.end, 0);
  forward.className = "forward";
  const steps = [button(words.again, number), button(words.leave, 0)];
  if (number > 1) steps.unshift(button(words.back, number - 1));
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
 * Look at the state at each frame: a goal is met the moment it is reached, and stays met.
 *
 * @param {any} panel
 * @param {() => any} factsOf the state; asked for only while there is a lesson
 * @param {Record<string, Element>} regions parts of the picture by name
 */
export function checkLesson(panel, factsOf, regions) {
  const { lesson } = panel;
  if (!lesson) return;
  const facts = factsOf(),
    each = judge(lesson.checks, facts);
  if (panel.root.classList.contains("leaving")) return;
  each.forEach(({ holds, now }, k) => {
    if (holds) panel.met[k] = now;
  });
  panel.done = each.every((_check, k) => panel.met[k] !== undefined);
  if (panel.done) say(panel.said, `${lesson.words.done} ${lesson.said.replace("{hardest}", facts.hardest || "–")}`);
  const shown = each.map(({ now }, k) => (now === "–" ? (panel.met[k] ?? now) : now));
  const mark = (k) => (panel.met[k] === undefined ? "" : " ✓");
  say(panel.goals, lesson.goals.map((text, k) => text.replace("{now}", shown[k]) + mark(k)).join(" "));
  panel.root.classList.toggle("done", panel.done);
  panel.forward.hidden = !panel.done;
  for (const [name, node] of Object.entries(regions))
    node.classList.toggle("lit", !panel.done && lesson.region.includes(name));
}
