// Row numbers on their way between browser and server, where __init__.py does the same. Many go as runs of neighbors,
// or as one bit for each row, whichever is shorter.

const FEW = 500; // that go as a list

/**
 * @param {ArrayLike<number>} rows, in ascending order where there are many
 * @param {number} n of all
 * @returns {{ rows?: number[], runs?: string, bits?: string }} base64 of uint32 (start, length) of each run, or of bits
 */
export function packRows(rows, n) {
  if (rows.length <= FEW) return { rows: Array.from(rows) };
  const runs = [];
  for (let k = 0; k < rows.length && 4 * runs.length < n / 8; k++) {
    if (k && rows[k] === rows[k - 1] + 1) runs[runs.length - 1]++;
    else runs.push(rows[k], 1);
  }
  if (4 * runs.length < n / 8) return { runs: toBase64(new Uint8Array(Uint32Array.from(runs).buffer)) };
  const bits = new Uint8Array(Math.ceil(n / 8));
  for (let k = 0; k < rows.length; k++) bits[rows[k] >> 3] |= 1 << (rows[k] & 7);
  return { bits: toBase64(bits) };
}

/**
 * @param {any} given as packRows gives them
 * @returns {number[]}
 */
export function unpackRows(given) {
  const rows = given?.rows ? [...given.rows] : [];
  if (given?.runs) {
    const runs = new Uint32Array(fromBase64(given.runs).buffer);
    for (let k = 0; k < runs.length; k += 2) for (let i = 0; i < runs[k + 1]; i++) rows.push(runs[k] + i);
  }
  if (given?.bits) {
    const bits = fromBase64(given.bits);
    for (let i = 0; i < 8 * bits.length; i++) if ((bits[i >> 3] >> (i & 7)) & 1) rows.push(i);
  }
  return rows;
}

function toBase64(bytes) {
  let text = "";
  for (let k = 0; k < bytes.length; k += 8192) text += String.fromCharCode(...bytes.subarray(k, k + 8192));
  return btoa(text);
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}
