// Formulas typeset as MathML, from a short notation: `_`, `^` and `⌄` put the next atom below, above and underneath the
// last one, `/` makes a fraction of both. Braces group, parentheses group and are seen, quotes hold words. Numbers come
// from `n`; those of `held` belong to the knob that is dragged.

import { el, number } from "../../shared/dom.js";
import { symbolOf } from "../../shared/knob.js";
import { _ } from "../../shared/locale.js";

const MATH = "http://www.w3.org/1998/Math/MathML",
  TOKEN = /"[^"]*"|[#@][^\s#@{}()_^/]+|\d+|\p{L}+[⁺]?|\S/gu,
  SCRIPTS = { _: "msub", "^": "msup", "⌄": "munder", "/": "mfrac" };

export const TERMS = 3; // shown of each sum; the rest is counted and added up

function m(tag, ...children) {
  const node = document.createElementNS(MATH, tag);
  node.append(...children);
  return node;
}

/** @param {number} x */
export const n = (x) => `#${number(x + 0)}`; // + 0: of −0

/** @param {number} x */
export const held = (x) => `@${number(x)}`;

/** @param {string} words */
export const note = (words) => `"\u2003(${words.replaceAll('"', "”")})"`;

/**
 * e^l as a number, by powers of ten where it is large or small: e^(s/τ) overflows nothing here.
 *
 * @param {number} l
 */
export function exponential(l) {
  const ten = Math.floor(l / Math.LN10);
  return l > -6 && l < 9 ? n(Math.exp(l)) : `#${Math.exp(l - ten * Math.LN10).toFixed(2)}e${ten}`;
}

/**
 * Terms with a sign between them, and how many more there are.
 *
 * @param {string[]} terms the first of all
 * @param {number} more
 * @param {string} [rest] what these are together
 */
export function sum(terms, more, rest) {
  if (more <= 0) return terms.join(" + ");
  const words = _("{more} more", { more });
  return [...terms, `${rest ? `${rest} ⌄` : ""}"${words}"`].join(" + ");
}

function numeral(token) {
  const [first, ten] = token.slice(1).replaceAll("-", "−").split("e"),
    value = m("mn", first);
  if (token[0] === "@") value.setAttribute("class", "of-knob");
  return ten ? m("mrow", value, m("mo", "·"), m("msup", m("mn", "10"), m("mn", ten))) : value;
}

function atom(token, rest) {
  if (token === "{") return m("mrow", ...parse(rest, "}"));
  if (token === "(") return m("mrow", m("mo", "("), ...parse(rest, ")"), m("mo", ")"));
  if (token[0] === '"') return m("mtext", token.slice(1, -1));
  if (/[#@]/.test(token[0])) return numeral(token);
  return m(/\p{L}/u.test(token) ? "mi" : /\d/.test(token) ? "mn" : "mo", token);
}

function parse(tokens, end) {
  const nodes = [];
  for (let token; (token = tokens.shift()) && token !== end;) {
    const script = SCRIPTS[token];
    nodes.push(script ? m(script, nodes.pop(), atom(tokens.shift(), tokens)) : atom(token, tokens));
  }
  return nodes;
}

/**
 * A formula, cut before each sign of equality or addition, where a narrow panel may break it.
 *
 * @param {string} text
 * @returns {Element} of the class `terms`
 */
export function typeset(text) {
  const pieces = [[]];
  for (const node of parse(text.match(TOKEN))) {
    if (node.nodeName === "mo" && "=+".includes(node.textContent) && pieces.at(-1).length) {
      node.setAttribute("form", "infix"); // as before the cut
      pieces.push([]);
    }
    pieces.at(-1).push(node);
  }
  const math = pieces.map((nodes) => m("math", ...nodes));
  for (const piece of math) piece.setAttribute("displaystyle", "true");
  return el("div", { class: "terms" }, ...math);
}

/**
 * Letters and values of the knob that is dragged are lit, in every formula of the view.
 *
 * @param {LossViewState} lab
 */
export function lightKnob(lab) {
  const { knob } = lab.meta,
    symbol = lab.dragging ? lab.turned : null;
  for (const node of lab.root.querySelectorAll("math :is(mi, .of-knob)"))
    node.toggleAttribute("data-held", symbol === (node.localName === "mi" ? node.textContent : knob && symbolOf(knob)));
}
