// A bench to review samples at: one suspect, three buttons, what it is taken for; by keys, by touch, without waiting.

import { classOf, isTyped, keysOf } from "./keys.js";
import { decide, kept, markOf, newLog, undo } from "./log.js";
import { drawPicture } from "./pictures.js";
import { el, say } from "../shared/dom.js";
import { languageOf, unpack } from "../shared/transport.js";
import { _, mountIn, N_ } from "../shared/locale.js";

const WHILE_MOVING = 250; // milliseconds of rest before the page hears which sample is looked at
const FIELDS = "input, select, textarea, [contenteditable=true]";
const ARROWS =
  "canvas, input, select, [role=slider], [role=combobox], [role=radiogroup], [role=radio], [role=tab], " +
  "[role=grid], [role=option], [role=group] button";
const PILLS = "[data-testid=stButtonGroup]"; // after a click on one, arrows go through the samples, not the pills
let isPointed = true; // no Tab since the last click
const known = new Map(); // by data set: the log and where one is, should the part be drawn anew by another element
const UNLABELED = N_("Relabel is off: these data have no labels to choose from.");
const DONE = { keep: N_("kept"), relabel: N_("relabeled"), drop: N_("dropped") };

/**
 * @param {any} parent the element that it fills
 * @param {Uint8Array} blob what pack of shared/transport.py gives; another one may follow
 * @param {Host} host where it stands
 */
export function mount(parent, blob, host) {
  const data = unpack(blob),
    view = parent._bench || (parent._bench = build(parent));
  view.host = host;
  load(view, data);
  return () => {
    clearTimeout(view.timer);
    window.removeEventListener("keydown", view.onkey, true);
    window.removeEventListener("pointerdown", view.onpoint, true);
    view.root.remove();
    parent._bench = null;
  };
}

/**
 * @param {PartArguments} component
 */
export default function ({ parentElement, data, setStateValue }) {
  return mountIn(mount, parentElement, data, languageOf(data), { report: setStateValue });
}

function build(parent) {
  /** @type {any} */
  const view = { of: null, at: 0, drawn: null };
  const button = (text, key, act, kind) =>
    el("button", { type: "button", onclick: act, "aria-keyshortcuts": key, class: kind }, text, el("kbd", {}, key));
  view.keep = button(_("Keep"), "K", () => choose(view, "keep"), "what");
  view.relabel = button(_("Relabel"), "R", () => choose(view, "relabel"), "what");
  view.drop = button(_("Drop"), "D", () => choose(view, "drop"), "what");
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
  view.sentence = el("p", { class: "said" });
  view.why = el("p", { class: "why" });
  view.unlabeled = el("p", { class: "why", id: "unlabeled" }, _(UNLABELED));
  view.status = el("p", { class: "status", role: "status" });
  view.picture = el("canvas", { role: "img" });
  view.text = el("p", { class: "text", lang: "" });
  view.badge = el("span", { class: "badge" });
  view.name = el("span", { class: "name" });
  view.title = el("h3", {});
  view.near = el("div", { class: "pictures", role: "list" });
  view.middle = el(
    "div",
    { class: "middle" },
    el("div", { class: "top" }, view.place, view.status),
    view.sentence,
    el("div", { class: "whats" }, view.keep, view.relabel, view.drop),
    view.likely,
    el("label", { class: "right" }, _("Relabel as "), view.classes),
    view.unlabeled,
    el("div", { class: "ways" }, view.back, view.next, view.undo),
    view.why,
  );
  view.root = el(
    "div",
    { class: "bench", role: "group", "aria-label": _("review") },
    el(
      "div",
      { class: "desk" },
      el("div", { class: "suspect" }, view.picture, view.text, el("p", {}, view.badge, view.name)),
      view.middle,
      el("div", { class: "near" }, view.title, view.near),
    ),
  );
  parent.append(view.root);
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
  for (const what of ["keep", "relabel", "drop"]) {
    view[what].setAttribute("aria-pressed", String(mark === what));
    view[what].disabled = !item;
  }
  view.back.disabled = view.at <= 0;
  view.next.disabled = view.at + 1 >= meta.total;
  view.undo.disabled = !(meta.mayUndo || log.stack.length || log.events.length);
  const labeled = Boolean(meta.classes.length);
  view.classes.parentElement.hidden = !labeled;
  view.unlabeled.hidden = labeled;
  if (labeled) view.relabel.removeAttribute("aria-describedby");
  else view.relabel.setAttribute("aria-describedby", "unlabeled");
  if (!item) {
    for (const part of ["sentence", "why", "title", "badge", "name", "status", "text"])
      say(view[part], part === "sentence" ? "…" : "");
    view.near.replaceChildren();
    view.likely.replaceChildren();
    return;
  }
  if (view.shown !== item.id) view.classes.value = label || (item.keepFirst ? "" : item.suggested) || item.given;
  offer(view, item);
  view.shown = item.id;
  say(view.sentence, item.sentence);
  say(view.why, item.why);
  say(view.title, item.title);
  say(view.badge, item.badge);
  view.badge.hidden = !item.badge;
  say(view.name, item.id);
  say(view.text, item.text);
  view.root.classList.toggle("texts", Boolean(item.text));
  say(view.status, statusOf(view));
  paint(view);
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
  return mark === "relabel" ? _("relabeled as {label}", { label }) : DONE[mark] ? _(DONE[mark]) : _("undecided");
}

/** Mark the button that the sentence suggests, and give each likely class a key. */
function offer(view, item) {
  const { classes } = view.meta,
    own = view.classes.value === item.given;
  view.relabel.disabled = !classes.length || own;
  view.relabel.title = classes.length ? (own ? _("Choose another class first.") : "") : _(UNLABELED);
  view.keep.classList.toggle("first", item.keepFirst);
  view.relabel.classList.toggle("first", !item.keepFirst && !view.relabel.disabled);
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
    { near } = meta.items[position] || item,
    beside = position < 0 ? null : sheets[1];
  const alt = item.text ? "" : _("image {id}, labeled {given}", { id: item.id, given: item.given });
  drawPicture(view.picture, sheets[0], meta.pictures, sheets[0] === null ? -1 : position, alt);
  view.near.replaceChildren(
    ...near.map(({ picture, text, body }) => {
      const canvas = el("canvas", { role: "img" });
      drawPicture(canvas, beside, meta.near, picture, _("image {text}", { text }));
      const words = body ? el("p", { class: "text" }, body) : "";
      return el("figure", { role: "listitem" }, canvas, el("figcaption", {}, text), words);
    }),
  );
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
  decide(view.log, item, what, what === "relabel" ? view.classes.value : "");
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
  view.host.report("decided", {
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
  if (isTyped(on)) return;
  const key = event.key.toLowerCase(),
    arrow = { arrowright: 1, arrowleft: -1 }[key],
    item = itemAt(view);
  const isTheirs = on.closest && on.closest(ARROWS) && !(isPointed && on.closest(PILLS));
  if (arrow && isTheirs && !view.root.contains(on)) return;
  const what = { k: "keep", r: "relabel", d: "drop" }[key],
    name = item && classOf(key, item.likely, view.meta.classes);
  if (!arrow && !what && !name && key !== "u") return;
  event.preventDefault(); // where it is held down too: it types into no picker
  event.stopImmediatePropagation();
  if (arrow) step(view, arrow);
  else if (event.repeat) return;
  else if (what) choose(view, what);
  else if (name) relabel(view, name);
  else takeBack(view);
}
