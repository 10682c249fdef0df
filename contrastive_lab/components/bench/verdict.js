// What is said of the sample at hand: its label, what it looks like, how likely the label is wrong, and who says so.

import { el, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

const NONE = { given: "", looksLike: "", likeliness: "", wrong: null, sentence: "…", votes: [], why: "" };

/** The elements of a verdict; `showVerdict` fills them. */
export function newVerdict() {
  const line = (title, kind) => {
    const value = el("strong", {}),
      share = el("small", {});
    return { value, share, box: el("p", { class: `class ${kind}` }, el("span", {}, title), value, " ", share) };
  };
  const given = line(_("Labeled"), ""),
    other = line(_("Looks like"), "other"),
    bar = el("i", {}),
    meter = el("div", { class: "meter", "aria-hidden": "true" }, bar),
    said = el("p", { class: "said" }),
    votes = el("table", { class: "votes", "aria-label": _("voters") }),
    why = el("p", { class: "why" });
  const root = el("div", { class: "verdict" }, given.box, other.box, meter, said, votes, why);
  return { root, given, other, bar, meter, said, votes, why };
}

/** Fill them with an item's words; undefined: it is on its way. */
export function showVerdict(parts, item) {
  const { given, looksLike, likeliness, wrong, sentence, votes, why } = item ?? NONE;
  const name = (line, text) => {
    say(line.value, text);
    line.box.hidden = !text;
  };
  name(parts.given, given);
  name(parts.other, looksLike);
  say(parts.other.share, likeliness);
  parts.meter.hidden = wrong === null;
  parts.bar.style.width = `${100 * (wrong ?? 0)}%`;
  say(parts.said, sentence);
  say(parts.why, why);
  parts.root.classList.toggle("asks", !given);
  const kind = (text) => ({ class: text === looksLike ? "other" : "" });
  const rows = votes.map(([voter, text]) =>
    el("tr", {}, el("th", { scope: "row" }, voter), el("td", kind(text), text)),
  );
  parts.votes.replaceChildren(...rows);
}
