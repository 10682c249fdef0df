// Ids of rows as one text in UTF-8, a 0 behind each: a million strings would cost ten times as much. An id is cut out
// when it is shown, and looked for in the bytes.

const decoder = new TextDecoder(),
  encoder = new TextEncoder();

/**
 * @param {Uint8Array} bytes
 * @param {number} n
 */
export function idsIn(bytes, n) {
  const ends = new Uint32Array(n);
  for (let i = 0, at = 0; i < n; i++, at++) {
    at = bytes.indexOf(0, at);
    ends[i] = at;
  }
  return { bytes, ends };
}

/**
 * @param {any} ids
 * @param {number} i
 */
export function idOf({ bytes, ends }, i) {
  return i < ends.length ? decoder.decode(bytes.subarray(i ? ends[i - 1] + 1 : 0, ends[i])) : "";
}

/** The row in whose id a byte stands. */
function rowAt(ends, at) {
  let low = 0,
    high = ends.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Rows with this id, or else those whose id ends in it, or else holds it.
 *
 * @param {any} ids
 * @param {string} text
 * @returns {number[]}
 */
export function rowsWithId({ bytes, ends }, text) {
  const wanted = encoder.encode(text),
    [same, ending, holding] = [[], [], []];
  for (let at = bytes.indexOf(wanted[0]); at >= 0; at = bytes.indexOf(wanted[0], at + 1)) {
    let k = 1;
    while (k < wanted.length && bytes[at + k] === wanted[k]) k++;
    if (k < wanted.length) continue;
    const row = rowAt(ends, at),
      isEnd = ends[row] === at + k;
    if (isEnd) (at === (row ? ends[row - 1] + 1 : 0) ? same : ending).push(row);
    if (holding[holding.length - 1] !== row) holding.push(row);
  }
  return same.length ? same : ending.length ? ending : holding;
}
