// A bench to review samples at: one suspect, three buttons, what it is taken for; by keys, by touch, without waiting.

import { drawFilm } from "./film.js";
import { classOf, isTyped, keyList, keysOf } from "./keys.js";
import { decide, kept, markOf, newLog, undo } from "./log.js";
import { drawPicture } from "./pictures.js";
import { newVerdict, showVerdict } from "./verdict.js";
import { el, say } from "../shared/dom.js";
import { _, N_ } from "../shared/locale.js";
import { inApp, partOf } from "../shared/part.js";

const WHILE_MOVING = 250; // milliseconds of rest before the page hears which sample is looked at
const FIELDS = "input, select, textarea, [contenteditable=true]";
const ARROWS =
  "canvas, input, select, [role=slider], [role=combobox], [role=radiogroup], [role=radio], [role=tab], " +
  "[role=grid], [role=option], [role=group] button";
const PILLS = "[data-testid=stButtonGroup]"; // after a click on one, arrows go through the samples, not the pills
let isPointed = true; // no Tab since the last click
const known = new Map(); // by data set: the log and where one is, should the part be drawn anew by another element
const UNLABELED = N_("Relabel is off: these data have no labels to choose from.");

const resized = () => {}; // its pictures keep their pixels
const mount = partOf("_bench", build, load, resized, (view) => {
  clearTimeout(view.timer);
  window.removeEventListener("keydown", view.onkey, true);
  window.removeEventListener("pointerdown", view.onpoint, true);
});

export default inApp(mount);

function build() {
  /** @type {any} */
  const view = { of: null, at: 0, drawn: null };
  const button = (text, key, act, kind) =>
    el("button", { type: "button", onclick: act, "aria-keyshortcuts": key, class: kind }, text, el("kbd", {}, key));
  view.choices = ["keep", "relabel", "drop"].map((what) => button("", "", () => choose(view, what), "what"));
  [view.keep, view.relabel, view.drop] = view.choices;
  view.whats = el("div", { class: "whats" });
  view.back = button(_("Back"), "←", () => step(view, -1), "way");
  view.next = button(_("Next"), "→", () => step(view, 1), "way");
  view.undo = button(_("Undo"), "U", () => takeBack(view), "way");
  view.classes = el("select", { "aria-label": _("Right class") });
  view.classes.onkeydown = (event) => {
    if (event.key === "Enter") choose(view, "relabel");
  };
  view.classes.onchange = () => {
    say(view.status, statusOf(view));
    offer(view, itemAt(view));
  };
  view.likely = el("div", { class: "likely", role: "group", "aria-label": _("Likely classes") });
  view.place = el("h2", {});
  view.verdict = newVerdict();
  view.unlabeled = el("p", { class: "why", id: "unlabeled" }, _(UNLABELED));
  view.status = el("p", { class: "status", role: "status" });
  view.picture = el("canvas", { role: "img" });
  view.text = el("p", { class: "text", lang: "" });
  view.badge = el("span", { class: "badge" });
  view.name = el("span", { class: "name" });
  view.near = el("div", { class: "near" });
  view.film = { box: el("div", { class: "film", role: "group", "aria-label": _("samples of the list") }) };
  view.keys = el("dialog", { class: "keys", "aria-label": _("All keys"), onclick: () => view.keys.close() });
  view.right = el("label", { class: "right" }, el("span", {}, _("Relabel as ")), view.classes);
  view.middle = el(
    "div",
    { class: "middle" },
    view.verdict.root,
    view.whats,
    el("div", { class: "others" }, view.likely, view.right),
    view.unlabeled,
    el("div", { class: "ways" }, view.back, view.next, view.undo),
    el("button", { type: "button", class: "hint", onclick: () => showKeys(view) }, ...hints()),
  );
  view.root = el(
    "div",
    { class: "bench", role: "group", "aria-label": _("review") },
    el(
      "div",
      { class: "whole" },
      el(
        "div",
        { class: "suspect" },
        view.picture,
        view.text,
        el("div", { class: "under" }, el("p", {}, view.badge, view.name), view.status, view.place),
      ),
      view.middle,
      view.near,
      view.film.box,
    ),
    view.keys,
  );
  view.onkey = (event) => onKey(view, event);
  view.onpoint = () => (isPointed = true);
  window.addEventListener("pointerdown", view.onpoint, true);
  window.addEventListener("keydown", view.onkey, true); // before Streamlit, for which R draws the page anew
  return view;
}

function load(view, data) {
  const { meta } = data;
  if (!known.has(meta.of))
    known.set(meta.of, { log: newLog(Math.random().toString(36).slice(2)), id: "", go: null, changed: null });
  const here = known.get(meta.of);
  Object.assign(view, { meta, here, log: here.log });
  kept(view.log, meta.ack);
  if (here.changed !== meta.changed) view.log.stack = []; // the page decided: the next undo is of that
  const last = meta.items.findIndex((item) => item.id === here.id);
  view.at = here.go !== meta.go || last < 0 ? meta.at : meta.start + last;
  Object.assign(here, { go: meta.go, changed: meta.changed });
  const shown = view.shown,
    picked = view.classes.value; // a class that was chosen while the page answered stays
  view.classes.replaceChildren(...meta.classes.map((name) => el("option", { value: name }, name)));
  view.shown = null;
  for (const { what, text, key } of meta.choices) {
    view[what].replaceChildren(text, el("kbd", {}, key));
    view[what].setAttribute("aria-keyshortcuts", key);
  }
  const buttons = meta.choices.map(({ what }) => view[what]);
  if (buttons.some((one, k) => one !== view.whats.children[k]) || buttons.length !== view.whats.children.length)
    view.whats.replaceChildren(...buttons);
  view.root.classList.toggle("blind", !data.pictures.length); // vectors may have no pictures
  decode(view, data);
  show(view);
  if (shown && shown === view.shown && meta.classes.includes(picked)) {
    view.classes.value = picked;
    view.classes.onchange();
  }
}

/** Decode the pictures of a stretch. Those of the stretch before stay until all are there. */
function decode(view, { meta, pictures, near }) {
  if (view.drawn && same(view.drawn.bytes, [pictures, near])) {
    Object.assign(view.drawn, { meta });
    return;
  }
  const sheet = (bytes) => (bytes.length ? createImageBitmap(new Blob([bytes])) : null);
  Promise.all([sheet(pictures), sheet(near)]).then((sheets) => {
    if (view.meta !== meta) return;
    view.drawn = { meta, sheets, bytes: [pictures, near] };
    paint(view);
  });
}

function same(some, others) {
  return some.every((bytes, k) => bytes.length === others[k].length && bytes.every((b, i) => b === others[k][i]));
}

function itemAt(view) {
  return view.meta ? view.meta.items[view.at - view.meta.start] : undefined;
}

/** The sample at hand in words and pictures. */
function show(view) {
  const item = itemAt(view),
    { meta, log } = view,
    { mark, label } = item ? markOf(log, item) : { mark: "", label: "" };
  const outside = view.at < 0;
  if (item) view.here.id = item.id;
  say(view.place, outside ? _("Not on this list") : placeOf(view.at + 1, meta));
  for (const { what } of meta.choices) {
    view[what].setAttribute("aria-pressed", String(mark === what));
    view[what].disabled = !item;
  }
  view.back.disabled = view.at <= 0;
  view.next.disabled = view.at + 1 >= meta.total;
  view.undo.disabled = !(meta.mayUndo || log.stack.length || log.events.length);
  const labeled = Boolean(meta.classes.length);
  view.right.hidden = !labeled;
  view.unlabeled.hidden = labeled || meta.arePairs;
  if (labeled || meta.arePairs) view.relabel.removeAttribute("aria-describedby");
  else view.relabel.setAttribute("aria-describedby", "unlabeled");
  showVerdict(view.verdict, item);
  queue(view);
  if (!item) {
    for (const part of ["badge", "name", "status", "text"]) say(view[part], "");
    view.near.replaceChildren();
    view.likely.replaceChildren();
    return;
  }
  if (view.shown !== item.id) view.classes.value = label || (item.keepFirst ? "" : item.suggested) || item.given;
  offer(view, item);
  view.shown = item.id;
  say(view.badge, item.badge);
  view.badge.hidden = !item.badge;
  say(view.name, item.id);
  say(view.text, item.text);
  view.root.classList.toggle("texts", Boolean(item.text));
  say(view.status, statusOf(view));
  paint(view);
}

function queue(view) {
  const badgeOf = (item) => view.meta.choices.find(({ what }) => what === markOf(view.log, item).mark)?.key ?? "";
  drawFilm(view, badgeOf, (place) => step(view, place - view.at));
}

/** Which of the list it is; a list that is still being made does not look like a whole one. */
function placeOf(nth, { total, soFar }) {
  const [place, all] = [nth, total].map((n) => n.toLocaleString("en"));
  return soFar ? _("{place} of {all} so far", { place, all }) : _("{place} of {all}", { place, all });
}

function statusOf(view) {
  const item = itemAt(view);
  if (!item) return "";
  const { mark, label } = markOf(view.log, item);
  if (mark === "relabel" && !view.meta.arePairs) return _("relabeled as {label}", { label });
  return view.meta.choices.find(({ what }) => what === mark)?.done ?? _("undecided");
}

/** Mark the button that the sentence suggests, and give each likely class a key. */
function offer(view, item) {
  const { classes, arePairs } = view.meta,
    own = !arePairs && view.classes.value === item.given;
  view.relabel.disabled = arePairs ? !item.suggested : !classes.length || own;
  view.relabel.title = arePairs || classes.length ? (own ? _("Choose another class first.") : "") : _(UNLABELED);
  const isOpen = !markOf(view.log, item).mark;
  view.keep.classList.toggle("first", item.keepFirst && isOpen);
  view.relabel.classList.toggle("first", !arePairs && !item.keepFirst && isOpen && !view.relabel.disabled);
  if (!arePairs) {
    const { text, key } = view.meta.choices.find(({ what }) => what === "relabel"),
      name = view.relabel.disabled ? "" : view.classes.value;
    view.relabel.replaceChildren(name ? `→ ${name}` : text, el("kbd", {}, key));
    if (name) view.relabel.setAttribute("aria-label", _("Relabel as {name}", { name }));
    else view.relabel.removeAttribute("aria-label");
  }
  const keys = keysOf(item.likely, classes);
  view.likely.replaceChildren(
    ...item.likely.map((name, k) =>
      el(
        "button",
        { type: "button", onclick: () => relabel(view, name), "aria-keyshortcuts": keys[k] },
        el("kbd", {}, keys[k]),
        name,
      ),
    ),
  );
}

function paint(view) {
  const item = itemAt(view),
    { meta, sheets } = view.drawn || { meta: view.meta, sheets: [] };
  if (!item) return;
  const position = meta.items.findIndex(({ id }) => id === item.id), // −1: its pictures are still being decoded
    { evidence } = meta.items[position] || item,
    beside = position < 0 ? null : sheets[1];
  const { id, given } = item,
    named = view.meta.arePairs ? _("image {text}", { text: id }) : _("image {id}, labeled {given}", { id, given }),
    alt = item.text ? "" : named;
  drawPicture(view.picture, sheets[0], meta.pictures, sheets[0] === null ? -1 : position, alt);
  queue(view);
  const figure = ({ picture, text, body, isNamed }) => {
    const canvas = el("canvas", { role: "img" });
    drawPicture(canvas, beside, meta.near, picture, _("image {text}", { text }));
    const words = body ? el("p", { class: "text" }, body) : "";
    return el("figure", { role: "listitem" }, canvas, isNamed ? el("figcaption", {}, text) : "", words);
  };
  view.near.replaceChildren(
    ...evidence.flatMap(({ title, near }) => [
      el("h3", {}, title),
      el("div", { class: "pictures", role: "list" }, ...near.map(figure)),
    ]),
  );
}

function hints() {
  const lines = [["←"], ["→", _("walk")], ["U", _("undo")], ["?", _("all keys")]];
  return lines.flatMap(([key, text]) => [el("kbd", {}, key), text ? el("span", {}, text) : ""]);
}

/** Every key of the page, over it until one is pressed. */
function showKeys(view) {
  const { choices, arePairs } = view.meta;
  const lines = keyList(choices, arePairs).map(([key, text]) => el("p", {}, el("kbd", {}, key), text));
  view.keys.replaceChildren(el("h3", {}, _("All keys")), ...lines);
  view.keys.showModal();
}

/** Decide for a class: the sample keeps its label where that is it. */
function relabel(view, name) {
  const item = itemAt(view);
  if (!item || !view.meta.classes.includes(name)) return;
  view.classes.value = name;
  offer(view, item);
  choose(view, name === item.given ? "keep" : "relabel");
}

function choose(view, what) {
  const item = itemAt(view);
  if (!item || view[what].disabled) return;
  const label = view.meta.arePairs ? item.suggested : view.classes.value;
  decide(view.log, item, what, what === "relabel" ? label : "");
  if (view.at >= 0 && view.at + 1 < view.meta.total) view.at++;
  show(view);
  report(view);
}

function takeBack(view) {
  if (view.undo.disabled) return;
  const id = undo(view.log),
    place = view.meta.items.findIndex((item) => item.id === id);
  if (place >= 0) view.at = view.meta.start + place;
  show(view);
  report(view);
}

function step(view, by) {
  const at = view.at + by;
  if (at < 0 || at >= view.meta.total) return;
  view.at = at;
  show(view);
  clearTimeout(view.timer);
  view.timer = setTimeout(() => report(view), WHILE_MOVING);
}

/** All that is not known to be kept, and where one is. */
function report(view) {
  clearTimeout(view.timer);
  const item = itemAt(view);
  view.send("decided", {
    nonce: view.log.nonce,
    events: view.log.events,
    at: item ? item.id : "",
    place: view.at,
    go: view.here.go,
  });
}

function onKey(view, event) {
  const on = event.composedPath()[0];
  if (event.key === "Tab") isPointed = false;
  if (event.ctrlKey || event.metaKey || event.altKey || !view.root.isConnected) return;
  if (event.key === "Escape" && on.matches && on.matches(FIELDS)) setTimeout(() => on.blur()); // after what it closes
  if (isTyped(on) || view.keys.open) return view.keys.open && event.key !== "Escape" ? view.keys.close() : undefined;
  const key = event.key.toLowerCase(),
    arrow = { arrowright: 1, arrowleft: -1 }[key],
    item = itemAt(view);
  const isTheirs = on.closest && on.closest(ARROWS) && !(isPointed && on.closest(PILLS));
  if (arrow && isTheirs && !view.root.contains(on)) return;
  const what = view.meta.choices.find((choice) => choice.key.toLowerCase() === key)?.what,
    name = item && classOf(key, item.likely, view.meta.classes);
  if (!arrow && !what && !name && key !== "u" && key !== "?") return;
  event.preventDefault(); // where it is held down too: it types into no picker
  event.stopImmediatePropagation();
  if (arrow) step(view, arrow);
  else if (event.repeat) return;
  else if (key === "?") showKeys(view);
  else if (what) choose(view, what);
  else if (name) relabel(view, name);
  else takeBack(view);
}
