// The words of the browser parts in another language; what contrastive_lab/words is for pages. English stands in the
// code, and what stands in a part's DOM is translated as it comes there. In English nothing is observed.

const HOLE = /\{(\w+)\}/,
  LETTERS = /\p{L}{2,}/gu,
  SENTENCE = /(?<=[.!?…])\s+(?=[^\p{L}]*\p{Lu}|[^\p{L}\d]*\d)/u,
  SEPARATORS = ["; ", " · ", ": ", ", ", "  ", " ("],
  WIDE = /[\u2e80-\u9fff\uff00-\uffef]/,
  EDGE = "\ue000", // of what was translated in a hole; stands in no text
  SEAM = new RegExp(`(?<=${WIDE.source}) (?=${EDGE}${WIDE.source})|(?<=${WIDE.source}${EDGE}) (?=${WIDE.source})`, "g"),
  WIDE_MARKS = { ".": "。", ":": "：", ";": "；", ",": "，", "!": "！", "?": "？", "…": "…" },
  ATTRIBUTES = ["aria-label", "title", "placeholder", "label", "alt"],
  PART = /[:;] | \(|[“”]/,
  STRONG = 8, // letters outside its holes from which a template is taken for itself
  MOST = 5000; // texts that are remembered

/** @type {Map<string, string>} */
let exact = new Map();
/** @type {Map<string, any[]>} */
let byWord = new Map();
/** @type {Map<string, string>} */
const known = new Map();
const roots = new Map(),
  sources = new WeakMap();

/**
 * The entries of a language, added to what other parts brought, or null for English.
 *
 * @param {Record<string, string> | null | undefined} entries
 */
export function setWords(entries) {
  if (!entries && !exact.size) return;
  const news = Object.entries(entries || {}).filter(([source, target]) => exact.get(source) !== target);
  if (entries && !news.length) return;
  exact = entries ? new Map([...exact, ...news]) : new Map();
  byWord = new Map();
  for (const [source, target] of exact) if (HOLE.test(source)) index(template(source, target));
  known.clear();
  for (const [root, observer] of roots) {
    if (root.isConnected) speak(root);
    else {
      observer?.disconnect();
      roots.delete(root);
    }
  }
}

/** Whether another language than English is shown. */
export function speaks() {
  return exact.size > 0;
}

/**
 * A text in the language that is shown; what is in no catalog stays as it is.
 *
 * @param {string} given
 */
export function tr(given) {
  if (!exact.size || typeof given !== "string") return given;
  let said = known.get(given);
  if (said === undefined) {
    said = any(given, false);
    if (known.size >= MOST) known.clear();
    known.set(given, said);
  }
  return said;
}

/**
 * Translate what stands in a part, now and whenever it changes.
 *
 * @param {any} root
 */
export function speak(root) {
  const watched = roots.get(root);
  if (!exact.size && !watched) return void roots.set(root, null);
  if (!exact.size) {
    watched.disconnect();
    roots.set(root, null);
  } else if (!watched) {
    const observer = new MutationObserver((records) => records.forEach(heard));
    const what = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ATTRIBUTES };
    observer.observe(root, what);
    roots.set(root, observer);
  }
  within(root);
}

/**
 * The text that was put into a node, before it was translated.
 *
 * @param {any} node
 * @returns {string}
 */
export function sourceOf(node) {
  const only = node.childNodes.length === 1 ? sources.get(node.firstChild) : null;
  return only && only.shown === node.textContent ? only.source : node.textContent;
}

// --- the DOM ----------------------------------------------------------------------------------

function heard(record) {
  if (record.type === "attributes") attribute(record.target, record.attributeName);
  else if (record.type === "characterData") text(record.target);
  else record.addedNodes.forEach(within);
}

function within(node) {
  if (node.nodeType === Node.TEXT_NODE) return text(node);
  if (node.nodeName === "STYLE" || node.nodeName === "SCRIPT") return;
  if (node.nodeType === Node.ELEMENT_NODE) for (const name of ATTRIBUTES) attribute(node, name);
  node.childNodes.forEach(within);
}

function text(node) {
  const was = sources.get(node),
    source = was && was.shown === node.data ? was.source : node.data,
    shown = tr(source);
  sources.set(node, { source, shown });
  if (shown !== node.data) node.data = shown;
}

function attribute(node, name) {
  const value = node.getAttribute(name);
  if (value === null) return;
  const all = node._said || (node._said = {}),
    source = all[name] && all[name].shown === value ? all[name].source : value,
    shown = tr(source);
  all[name] = { source, shown };
  if (shown !== value) node.setAttribute(name, shown);
}

// --- one text, as contrastive_lab/words/translate.py does it -----------------------------------

function template(source, target) {
  const pieces = source.split(/\{(\w+)\}/),
    segments = pieces.filter((_, k) => k % 2 === 0),
    names = pieces.filter((_, k) => k % 2 === 1);
  const letters = segments.join("\0").match(LETTERS) || [];
  return { segments, names, target, letters: letters.reduce((sum, word) => sum + word.length, 0) };
}

/** Under its longest word that touches no hole. */
function index(one) {
  const marked = one.segments.join("\0");
  let key = "";
  for (const { 0: word, index: at } of marked.matchAll(LETTERS))
    if (marked[at - 1] !== "\0" && marked[at + word.length] !== "\0" && word.length > key.length) key = word;
  if (!byWord.has(key)) byWord.set(key, []);
  byWord.get(key).push(one);
}

function any(given, inside) {
  if (!/[A-Za-z]/.test(given)) return given;
  const [, head, body, tail] = given.match(/^(\s*)([^]*?)(\s*)$/);
  return head + (whole(body, inside) ?? apart(body, inside)) + tail;
}

function whole(given, inside) {
  const mark = given.at(-1),
    first = given[0],
    other = first === first.toLowerCase() ? first.toUpperCase() : first.toLowerCase(),
    variants = /\p{L}/u.test(first) ? [given, other + given.slice(1)] : [given];
  const said = entry(variants, inside, mark);
  if (said !== null || !(mark in WIDE_MARKS)) return said;
  const bare = entry(
    variants.map((variant) => variant.slice(0, -1).trimEnd()),
    inside,
    "",
  );
  return bare && bare + (WIDE.test(bare.at(-1) || "") ? WIDE_MARKS[mark] : mark);
}

/** The first of some ways to write a text that is an entry, else the first of which a template says most. */
function entry(variants, inside, mark) {
  // One capitalized word in a hole is a name more likely than a button's label.
  const isName = inside && /^\p{Lu}\S*$/u.test(variants[0]);
  for (const variant of isName ? [] : variants) if (exact.has(variant)) return exact.get(variant);
  for (const variant of variants) {
    const found = byTemplate(variant, inside, mark);
    if (found !== null) return found;
  }
  return null;
}

function byTemplate(given, inside, mark) {
  const words = new Set(["", ...(given.match(LETTERS) || [])]);
  const near = [...words].flatMap((word) => byWord.get(word) || []);
  let second = null; // a template with a part of a sentence in its first hole
  for (const one of near.sort((a, b) => b.letters - a.letters)) {
    if (mark in WIDE_MARKS && !one.segments.at(-1)) continue;
    const holes = match(one, given);
    if (!holes || holes.some((hole) => SENTENCE.test(hole))) continue;
    const ends = [one.segments[0] ? "" : holes[0], one.segments.at(-1) ? "" : holes.at(-1)];
    // A short one would take what stands beside it.
    if (one.letters < 2 * STRONG && ends.some((hole) => / ·|· /.test(hole))) continue;
    if (one.letters < STRONG && !isSure(holes, inside)) continue;
    if (one.segments[0] || !PART.test(holes[0])) return filled(one, holes);
    second ??= [one, holes];
  }
  return second && filled(second[0], second[1]);
}

function match({ segments }, given) {
  const last = segments.at(-1),
    end = given.length - last.length,
    found = [];
  let at = segments[0].length;
  if (!given.startsWith(segments[0]) || !given.endsWith(last) || end < at) return null;
  for (const segment of segments.slice(1, -1)) {
    const place = given.indexOf(segment, at);
    if (place < 0 || place + segment.length > end) return null;
    found.push(given.slice(at, place));
    at = place + segment.length;
  }
  return [...found, given.slice(at, end)];
}

/** Whether a template of few letters may be meant: its holes are known, but for one name where it stands for itself. */
function isSure(holes, inside) {
  if (holes.some((hole) => SEPARATORS.some((s) => hole.includes(s)))) return false;
  const some = holes.filter(Boolean),
    names = some.filter((hole) => /\p{L}{2}/u.test(hole) && !exact.has(hole.trim()));
  return !names.length || (!inside && names.length === 1 && some.length > 1 && !names[0].includes(" "));
}

function filled(one, holes) {
  const values = Object.fromEntries(one.names.map((name, k) => [name, edged(holes[k])]));
  const said = one.target.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
  return said.replace(SEAM, "").replaceAll(EDGE, ""); // no space between wide characters
}

function edged(hole) {
  const said = any(hole, true);
  return said === hole ? said : EDGE + said + EDGE;
}

function apart(given, inside) {
  const sentences = given.split(SENTENCE);
  if (sentences.length > 1) return joined(sentences, inside);
  if (/^\(.*\)$/s.test(given)) return `(${any(given.slice(1, -1), inside)})`;
  const places = SEPARATORS.map((separator) => ({ at: given.indexOf(separator), separator }));
  for (const { at, separator } of places.filter((one) => one.at > 0).sort((a, b) => a.at - b.at)) {
    const rest = whole(given.slice(at + separator.length), inside); // what is led to: "At τ = 1, …"
    if (rest !== null) return joinedBy(any(given.slice(0, at), inside), separator, rest);
  }
  for (const separator of SEPARATORS) {
    if (!given.includes(separator)) continue;
    const parts = given.split(separator),
      said = parts.map((part) => any(part, inside));
    if (said.some((part, k) => part !== parts[k])) return said.reduce((a, b) => joinedBy(a, separator, b));
  }
  return given;
}

/** Sentences, as many at once as one entry holds. */
function joined(sentences, inside) {
  let out = "";
  for (let at = 0, length; at < sentences.length; at += length) {
    let said = null;
    for (length = Math.min(6, sentences.length - at); length && said === null; length--)
      said = whole(sentences.slice(at, at + length).join(" "), inside);
    length = said === null ? 1 : length + 1;
    said ??= apart(sentences[at], inside);
    out += (at && !WIDE.test(out.at(-1)) ? " " : "") + said;
  }
  return out;
}

function joinedBy(a, separator, b) {
  const wide = WIDE_MARKS[separator.trim()];
  return a + (wide && (WIDE.test(a.at(-1) || "") || WIDE.test(b[0] || "")) ? wide : separator) + b;
}
