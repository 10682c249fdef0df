// The blob that mount.py packs, unpacked again.

import assert from "node:assert/strict";
import { test } from "node:test";

import { unpack } from "../../contrastive_lab/components/shared/transport.js";

/** What `pack` in mount.py gives, byte for byte. */
function pack(meta, arrays) {
  const places = {};
  const parts = [];
  let offset = 0;
  for (const [name, bytes] of Object.entries(arrays)) {
    const padded = new Uint8Array(Math.ceil(bytes.length / 8) * 8);
    padded.set(bytes);
    places[name] = [offset, bytes.length];
    parts.push(padded);
    offset += padded.length;
  }
  let header = JSON.stringify({ meta, places });
  while ((new TextEncoder().encode(header).length + 8) % 8) header += " ";
  const text = new TextEncoder().encode(header);
  const length = new Uint8Array(8);
  new DataView(length.buffer).setUint32(0, text.length, true);
  return Uint8Array.from([length, text, ...parts].flatMap((p) => [...p]));
}

test("meta data and arrays come back, at any offset of the buffer", () => {
  const floats = new Uint8Array(new Float32Array([1.5, -2, 3]).buffer);
  const blob = pack({ title: "τ × “a”", n: 3 }, { floats, odd: Uint8Array.of(1, 2, 3), none: new Uint8Array() });
  for (const shift of [0, 1, 5]) {
    const buffer = new Uint8Array(blob.length + shift);
    buffer.set(blob, shift);
    const data = unpack(buffer.subarray(shift));
    assert.deepEqual(data.meta, { title: "τ × “a”", n: 3 });
    assert.deepEqual([...new Float32Array(data.floats.slice().buffer)], [1.5, -2, 3]);
    assert.deepEqual([...data.odd], [1, 2, 3]);
    assert.equal(data.none.length, 0);
  }
});

test("what Python packed", () => {
  // pack({"n": 2}, a=b"\x01\x02") of mount.py
  const header = '{"meta": {"n": 2}, "places": {"a": [0, 2]}}';
  const padded = header.padEnd(Math.ceil((header.length + 8) / 8) * 8 - 8);
  const bytes = new Uint8Array(8 + padded.length + 8);
  bytes[0] = padded.length;
  bytes.set(new TextEncoder().encode(padded), 8);
  bytes.set([1, 2], 8 + padded.length);
  const data = unpack(bytes);
  assert.equal(data.meta.n, 2);
  assert.deepEqual([...data.a], [1, 2]);
});
