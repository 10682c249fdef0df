// Terms typeset as MathML.

import { number } from "../../shared/dom.js";
import { _ } from "../../shared/locale.js";

const MATH = "http://www.w3.org/1998/Math/MathML";

export const TERMS = 3; // shown of each sum; the rest is counted and added up

/**
 * @param {string} tag
 * @param {...any} children
 */
export function m(tag, ...children) {
  const node = document.createElementNS(MATH, tag);
  node.append(...children.map((c) => (c instanceof Node ? c : document.createTextNode(String(c)))));
  return node;
}

export const mi = (text) => m("mi", text);

export const mo = (text) => m("mo", text);

export const row = (...children) => m("mrow", ...children);

export const over = (a, b) => m("mfrac", a, b);

const space = () => {
  const s = m("mspace");
  s.setAttribute("width", "0.2em");
  return s;
};

export const subscript = (a, b) => m("msub", mi(a), mi(b));

export const power = (exponent) => m("msup", mi("e"), exponent);

export const bracket = (...children) => row(mo("("), ...children, mo(")"));

export const log = () => row(mi("log"), space());

export const written = (text) => m("mtext", text);

export const note = (text) => written(`\u2003(${text})`);

/**
 * @param {any} value
 */
export function mn(value) {
  const text = typeof value === "number" ? number(Object.is(value, -0) ? 0 : value).replace("-", "−") : value;
  const [first, ten] = text.split("e");
  if (!ten) return m("mn", text);
  return row(m("mn", first), mo("·"), m("msup", m("mn", "10"), m("mn", ten.replace("-", "−"))));
}

/**
 * e^l as a number, by powers of ten where it is large or small: e^(s/τ) overflows nothing here.
 *
 * @param {number} l
 */
export function exponential(l) {
  if (l > -6 && l < 9) return mn(Math.exp(l));
  const ten = Math.floor(l / Math.LN10),
    first = Math.exp(l - ten * Math.LN10);
  return row(mn(first.toFixed(2)), mo("·"), m("msup", mn("10"), mn(String(ten).replace("-", "−"))));
}

/**
 * Terms with a sign between them, and how many more there are.
 *
 * @param {any[]} terms
 * @param {number} more
 * @param {any} [rest]
 */
export function sum(terms, more, rest) {
  const parts = terms.flatMap((t, k) => (k ? [mo("+"), t] : [t]));
  if (more > 0)
    parts.push(
      mo("+"),
      rest ? m("munder", rest, written(_("{more} more", { more }))) : written(_("{more} more", { more })),
    );
  return row(...parts);
}
