// Decisions by keys and buttons: what they change, their undo, and their way to the server.

import { selected } from "./film.js";
import { decide, markOf, undo } from "./log.js";
import { _ } from "../shared/locale.js";

const ANSWERED = 1500; // milliseconds after which a decision that is not stored makes the page ask for the server

/** A decision in words. */
export function wordOf({ meta }, { mark, label }) {
  if (mark === "relabel" && !meta.arePairs) return _("relabeled as {label}", { label });
  return meta.choices.find(({ what }) => what === mark)?.done ?? _("undecided");
}

export function itemAt(view) {
  return view.meta ? view.meta.items[view.at - view.meta.start] : undefined;
}

/** Decide for a class: a sample that has it keeps its label. */
export function relabel(view, name) {
  const items = selected(view, itemAt(view));
  if (!items.length || !view.meta.classes.includes(name)) return;
  if (items.length === 1 && name !== items[0].given) view.classes.value = name; // → and its class stay
  settle(view, items, items.every(({ given }) => given === name) ? "keep" : "relabel", () => name);
}

export function choose(view, what) {
  const items = selected(view, itemAt(view)),
    isOne = items.length === 1;
  if (!items.length || (isOne && view[what].disabled)) return;
  const likely = ({ looksLike, keepFirst, suggested }) => looksLike || (keepFirst ? "" : suggested),
    labelOf = (item) => (view.meta.arePairs ? item.suggested : isOne ? view.classes.value : likely(item));
  const some = what === "relabel" ? items.filter((item) => labelOf(item) && labelOf(item) !== item.given) : items;
  if (some.length) settle(view, some, what, what === "relabel" ? labelOf : () => "");
}

/** Decide on some samples and go on; what was decided otherwise before changes on the second press only. */
function settle(view, items, what, labelOf) {
  if (view.isLate) return;
  const goal = (item) => (what === "relabel" ? labelOf(item) : ""),
    others = items.filter((item) => {
      const { mark, label } = markOf(view.log, item);
      return mark && (mark !== what || (label || "") !== goal(item));
    });
  const asked = JSON.stringify([what, items.map((item) => [item.id, goal(item)])]);
  if (others.length && view.asked !== asked) {
    view.asked = asked;
    const was =
        others.length > 1 ? _("{count} samples", { count: others.length }) : wordOf(view, markOf(view.log, others[0])),
      now = wordOf(view, { mark: what, label: goal(items[0]) });
    view.notice = _("Already decided: {was}. Press again to change it: {now}", { was, now });
    return view.show();
  }
  decide(view.log, items, what, goal);
  view.notice = view.asked = "";
  const last = view.meta.items.indexOf(items.at(-1));
  view.here.chosen.clear();
  if (view.at >= 0 && last >= 0) view.at = Math.min(view.meta.start + last + 1, view.meta.total - 1);
  view.show();
  report(view);
}

export function takeBack(view) {
  if (view.undo.disabled) return;
  const last = view.log.stack.at(-1)?.[0].id,
    item = view.meta.items.find(({ id }) => id === last) ?? { id: last, mark: "" },
    was = wordOf(view, markOf(view.log, item)),
    { length: count } = undo(view.log);
  if (view.meta.items.includes(item)) view.at = view.meta.start + view.meta.items.indexOf(item);
  view.here.chosen.clear();
  const now = wordOf(view, markOf(view.log, item));
  view.notice = count ? _("Undone ({count}): {was}. Now: {now}", { count, was, now }) : "";
  view.asked = "";
  view.show();
  report(view);
}

/** All that is not known to be kept, and where one is. */
export function report(view) {
  clearTimeout(view.timer);
  const item = itemAt(view);
  clearTimeout(view.watch);
  if (view.log.events.length) view.watch = setTimeout(() => watch(view), ANSWERED);
  view.send("decided", {
    nonce: view.log.nonce,
    events: view.log.events,
    at: item ? item.id : "",
    place: view.at,
    go: view.here.go,
    list: view.meta.list,
  });
}

/** While decisions wait and no server answers, the first that waits is at hand and no key decides. */
async function watch(view) {
  if (!view.log.events.length || !view.root.isConnected) return;
  const isThere = await fetch("_stcore/health").then(
    ({ ok }) => ok,
    () => false,
  );
  const first = view.log.events[0]?.items?.[0].id;
  if (!isThere && !view.isLate && first) {
    const place = view.meta.items.findIndex(({ id }) => id === first);
    Object.assign(view, { isLate: true, at: view.meta.start + Math.max(0, place) });
    view.show();
  } else if (isThere && view.isLate) report(view);
  view.watch = setTimeout(() => watch(view), ANSWERED);
}
