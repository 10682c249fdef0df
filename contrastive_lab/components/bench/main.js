// A bench to review samples at: one suspect, three buttons, what it is taken for; by keys, by touch, without waiting.

import { drawFilm, PAGE, pick, selectOpen, strideOf } from "./film.js";
import { isTyped, keyList, keysOf } from "./keys.js";
import { choose, itemAt, relabel, report, takeBack, wordOf } from "./decisions.js";
import { kept, markOf, newLog } from "./log.js";
import { drawPicture } from "./pictures.js";
import { newVerdict, showVerdict } from "./verdict.js";
import { el, say } from "../shared/dom.js";
import { _, N_ } from "../shared/locale.js";
import { inApp, partOf } from "../shared/part.js";
import { said } from "../shared/texts.js";

const WHILE_MOVING = 250; // milliseconds of rest before the page hears which sample is looked at
const FIELDS = "input, select, textarea, [contenteditable=true]";
const ARROWS =
  "canvas, input, select, [role=slider], [role=combobox], [role=radiogroup], [role=radio], [role=tab], " +
  "[role=grid], [role=option], [role=group] button";
const PILLS = "[data-testid=stButtonGroup]"; // after a click on one, arrows go through the samples, not the pills
let isPointed = true; // no Tab since the last click
const known = new Map(); // by data set: the log and where one is, should the part be drawn anew by another element
const AT = "samples-at"; // of the tab: the sample at hand, since the address comes later
const [visit] = /** @type {any[]} */ (performance.getEntriesByType("navigation"));
let before = visit?.type === "reload" && visit.name.includes("/samples") ? sessionStorage.getItem(AT) : null;
const UNLABELED = N_("Relabel is off: these data have no labels to choose from.");

const resized = () => {}; // its pictures keep their pixels
export default inApp(partOf("_bench", build, load, resized, (view) => [view.timer, view.watch].forEach(clearTimeout)));

function build() {
  /** @type {any} */
  const view = { of: null, at: 0, drawn: null, show: () => show(view) };
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
    if (isPointed) view.classes.blur(); // the keys are for decisions again
    say(view.status, statusOf(view));
    offer(view, itemAt(view));
  };
  view.likely = el("div", { class: "likely", role: "group", "aria-label": _("Likely classes") });
  view.place = el("h2", {});
  view.verdict = newVerdict();
  view.unlabeled = el("p", { class: "why", id: "unlabeled" }, _(UNLABELED));
  view.status = el("p", { class: "status", role: "status" });
  view.picture = el("canvas", { role: "img" });
  view.text = el("div", { class: "text" });
  view.front = el("div", { class: "front" }); // in its place: what is asked about, or the labels of the nearest rows
  view.badge = el("span", { class: "badge" });
  view.name = el("span", { class: "name" });
  view.near = el("div", { class: "near" });
  view.film = { box: el("div", { class: "film", role: "group", "aria-label": _("samples of the list") }) };
  view.keys = el("dialog", { class: "keys", "aria-label": _("All keys"), onclick: () => view.keys.close() });
  view.mode = el("span", {});
  view.note = el("p", { class: "note", role: "status" });
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
    el("button", { type: "button", class: "hint", onclick: () => showGrid(view) }, el("kbd", {}, "G"), view.mode),
    view.note,
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
        view.front,
        el("div", { class: "under" }, el("p", {}, view.badge, view.name), view.status, view.place),
      ),
      view.middle,
      view.near,
      view.film.box,
    ),
    view.keys,
  );
  const hear = (kind, act) => {
    const heard = (event) => (view.root.isConnected ? act(event) : window.removeEventListener(kind, heard, true));
    window.addEventListener(kind, heard, true); // before Streamlit, for which R draws the page anew
  };
  hear("pointerdown", () => (isPointed = true));
  hear("keydown", (event) => onKey(view, event));
  hear("beforeunload", (event) => view.log?.events.length && event.preventDefault()); // what is not stored is lost
  return view;
}

function load(view, data) {
  const { meta } = data;
  const fresh = { log: newLog(Math.random().toString(36).slice(2)), id: before, go: meta.go, chosen: new Set() },
    here = known.get(meta.of) ?? fresh;
  known.set(meta.of, here);
  Object.assign(view, { meta, here, log: here.log });
  kept(view.log, meta.ack);
  if (view.log.events.length && meta.ack.nonce !== view.log.nonce) setTimeout(() => report(view)); // a new server
  if (view.isLate && !view.log.events.length) view.isLate = false;
  if (here.changed !== meta.changed) view.log.stack = []; // the page decided: the next undo is of that
  const last = meta.items.findIndex((item) => item.id === here.id);
  view.at = here.go !== meta.go || last < 0 ? meta.at : meta.start + last;
  if (before && view.at !== meta.at) setTimeout(() => report(view)); // a reload: the page follows
  before = null;
  if (here.go !== meta.go) document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0); // a choice below the desk
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
  if (view.drawn?.meta.content === meta.content) {
    Object.assign(view.drawn, { meta });
    return;
  }
  const sheet = (bytes) => (bytes.length ? createImageBitmap(new Blob([bytes])) : null);
  Promise.all([sheet(pictures), sheet(near)]).then((sheets) => {
    if (view.meta.content !== meta.content) return;
    view.drawn = { meta: view.meta, sheets };
    paint(view);
  });
}

/** The sample at hand in words and pictures. */
function show(view) {
  const item = itemAt(view),
    { meta, log } = view,
    { mark, label } = item ? markOf(log, item) : { mark: "", label: "" };
  const outside = view.at < 0;
  if (item) sessionStorage.setItem(AT, (view.here.id = item.id));
  say(view.place, outside ? _("Not on this list") : placeOf(view.at + 1, meta));
  for (const { what } of meta.choices) {
    view[what].setAttribute("aria-pressed", String(mark === what));
    view[what].disabled = !item;
  }
  view.root.classList.toggle("grid", isGrid());
  say(view.note, meta.note);
  say(view.mode, isGrid() ? _("one at a time") : _("grid"));
  view.root.classList.toggle("late", Boolean(view.isLate || view.asked));
  view.back.disabled = view.at <= 0;
  view.next.disabled = view.at + 1 >= meta.total;
  view.undo.disabled = view.isLate || !(meta.mayUndo || log.stack.length || log.events.length);
  const labeled = Boolean(meta.classes.length);
  view.right.hidden = meta.classes.length <= 10; // all have a key
  view.unlabeled.hidden = labeled || meta.arePairs;
  if (labeled || meta.arePairs) view.relabel.removeAttribute("aria-describedby");
  else view.relabel.setAttribute("aria-describedby", "unlabeled");
  showVerdict(view.verdict, item);
  queue(view);
  if (!item) {
    for (const part of ["badge", "name", "status"]) say(view[part], "");
    for (const part of ["text", "front", "near"]) view[part].replaceChildren();
    view.beside = "";
    view.likely.replaceChildren();
    return;
  }
  const text = item.front.length ? "" : (item.text?.pieces.join("") ?? "");
  if (view.text.firstChild?.firstChild.textContent !== text)
    view.text.replaceChildren(...(text ? [said(item.text)] : []));
  if (view.shown !== item.id) view.classes.value = label || (item.keepFirst ? "" : item.suggested) || item.given;
  offer(view, item);
  view.shown = item.id;
  say(view.badge, item.badge);
  view.badge.hidden = !item.badge;
  say(view.name, item.id);
  view.root.classList.toggle("texts", Boolean(text));
  say(view.status, statusOf(view));
  paint(view);
}

function queue(view) {
  const badgeOf = (item) => {
    const { mark, label } = markOf(view.log, item),
      key = view.meta.choices.find(({ what }) => what === mark)?.key ?? "";
    return isGrid() && label && !view.meta.arePairs ? `${key} ${label}` : key;
  };
  drawFilm(view, isGrid(), badgeOf, (place, event) => {
    pick(view, place, event.shiftKey, event.ctrlKey || event.metaKey);
    if (event.detail > 1)
      showGrid(view); // a double click looks at one
    else step(view, place - view.at);
  });
}

const isGrid = () => localStorage.getItem("samples-grid") === "yes";

function showGrid(view) {
  localStorage.setItem("samples-grid", isGrid() ? "no" : "yes");
  view.here.chosen.clear();
  show(view);
}

/** Which of the list it is. */
function placeOf(nth, { total }) {
  const [place, all] = [nth, total].map((n) => n.toLocaleString("en"));
  return _("{place} of {all}", { place, all });
}

function statusOf(view) {
  const item = itemAt(view);
  if (!item) return "";
  const waiting = view.log.events.length;
  if (view.isLate) return _("The app does not answer: start it again. Decisions not saved yet: {waiting}", { waiting });
  if (view.notice) return view.notice;
  if (view.here.chosen.size) return _("{count} selected", { count: view.here.chosen.size });
  return wordOf(view, markOf(view.log, item));
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
  const keys = arePairs ? [] : keysOf(item.likely, classes),
    act = (key, name) => ({ type: "button", onclick: () => relabel(view, name), "aria-keyshortcuts": key });
  view.likely.replaceChildren(...keys.map(([key, name]) => el("button", act(key, name), el("kbd", {}, key), name)));
}

function paint(view) {
  const item = itemAt(view),
    { meta, sheets } = view.drawn || { meta: view.meta, sheets: [] };
  if (!item) return;
  const position = meta.items.findIndex(({ id }) => id === item.id), // −1: its pictures are still being decoded
    { evidence, front, tally } = meta.items[position] || item,
    beside = position < 0 ? null : sheets[1];
  const { id, given } = item,
    named = view.meta.arePairs ? _("image {text}", { text: id }) : _("image {id}, labeled {given}", { id, given }),
    alt = item.text ? "" : named;
  drawPicture(view.picture, sheets[0], meta.pictures, sheets[0] === null || front.length ? -1 : position, alt);
  queue(view);
  const figure = ({ picture, text, body, isNamed }) => {
    const canvas = el("canvas", { role: "img" });
    drawPicture(canvas, beside, meta.near, picture, _("image {text}", { text }));
    const words = body ? el("div", { class: "text" }, said(body)) : "";
    return el("figure", { role: "listitem" }, canvas, isNamed ? el("figcaption", {}, text) : "", words);
  };
  const shown = JSON.stringify([evidence, front, tally, beside ? view.drawn.meta.content : ""]);
  if (view.beside === shown) return; // what is unfolded stays
  view.beside = shown;
  view.front.replaceChildren(...front.map(figure), ...tallyOf(tally));
  view.near.replaceChildren(
    ...evidence.flatMap(({ title, near }) => [
      el("h3", {}, title),
      el("div", { class: "pictures", role: "list" }, ...near.map(figure)),
    ]),
  );
}

/** How many of the nearest rows have each label, as bars. */
function tallyOf(tally) {
  const all = tally.reduce((sum, [, count]) => sum + count, 0);
  if (!all) return [];
  const line = ([label, count]) =>
    el("p", {}, el("span", {}, label), el("i", { style: `width: ${(60 * count) / all}%` }), String(count));
  return [el("h3", {}, _("Labels of the {count} nearest rows", { count: all })), ...tally.map(line)];
}

function hints() {
  const lines = [["←"], ["→", _("browse")], ["U", _("undo")], ["?", _("all keys")]];
  return lines.flatMap(([key, text]) => [el("kbd", {}, key), text ? el("span", {}, text) : ""]);
}

/** Every key of the page, over it until one is pressed. */
function showKeys(view) {
  const { choices, arePairs } = view.meta;
  const lines = keyList(choices, arePairs).map(([key, text]) => el("p", {}, el("kbd", {}, key), text));
  view.keys.replaceChildren(el("h3", {}, _("All keys")), ...lines);
  view.keys.showModal();
}

function step(view, by) {
  const at = view.at + by;
  if (at < 0 || at >= view.meta.total) return;
  view.notice = view.asked = "";
  view.at = at;
  show(view);
  clearTimeout(view.timer);
  view.timer = setTimeout(() => report(view), WHILE_MOVING);
}

function onKey(view, event) {
  const on = event.composedPath()[0];
  if (event.key === "Tab") isPointed = false;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && on.matches && on.matches(FIELDS)) setTimeout(() => on.blur()); // after what it closes
  if (isTyped(on) || view.keys.open) return view.keys.open && event.key !== "Escape" ? view.keys.close() : undefined;
  const key = event.key.toLowerCase(),
    stride = isGrid() ? strideOf(view) : 0,
    more = { arrowdown: stride, arrowup: -stride, pagedown: stride && PAGE, pageup: stride && -PAGE },
    arrow = { arrowright: 1, arrowleft: -1, ...more }[key],
    item = itemAt(view);
  const isTheirs = on.closest && on.closest(ARROWS) && !(isPointed && on.closest(PILLS));
  if (arrow && isTheirs && !view.root.contains(on)) return;
  const what = view.meta.choices.find((choice) => choice.key.toLowerCase() === key)?.what,
    classes = item && !view.meta.arePairs ? keysOf(item.likely, view.meta.classes) : [],
    name = classes.find(([own]) => own === key)?.[1];
  if (!arrow && !what && !name && !["u", "g", "?", stride ? "a" : ""].includes(key)) return;
  event.preventDefault(); // where it is held down too: it types into no picker
  event.stopImmediatePropagation();
  const { top, bottom } = view.root.getBoundingClientRect(),
    isInView = top + bottom > 0 && top + bottom < 2 * innerHeight;
  if (!isInView)
    view.root.scrollIntoView({ block: "end" }); // nobody decides on what is out of sight
  else if (arrow) {
    const at = Math.min(Math.max(view.at + arrow, 0), view.meta.total - 1);
    pick(view, at, event.shiftKey, false);
    step(view, at - view.at);
  } else if (event.repeat) return;
  else if (key === "?") showKeys(view);
  else if (key === "g") showGrid(view);
  else if (key === "a" && stride) (selectOpen(view, (one) => !markOf(view.log, one).mark), show(view));
  else if (what) choose(view, what);
  else if (name) relabel(view, name);
  else takeBack(view);
}
