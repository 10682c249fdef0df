// How many of 20 seeds collapse on the circle of the Loss Lab, and by which step: `node benchmarks/collapse.mjs`.
// The lesson "Why does it not collapse?" tells of these figures. Measured on 2026-11-27 with Node 20.

/* global console */
import { COLLAPSED, advance, begin, places, spreadOf } from "../contrastive_lab/components/siamese/training.js";

const SEEDS = 20,
  STEPS = 1500;
const BOTH = { method: "simsiam", predictor: true, stopGradient: true, rate: 0.3, predictorRate: 1, momentum: 0.9 };
const CASES = {
  "SimSiam, both": {},
  "SimSiam, no stop-gradient": { stopGradient: false },
  "SimSiam, no predictor": { predictor: false },
  "BYOL, both": { method: "byol" },
  "BYOL, no predictor": { method: "byol", predictor: false },
};

for (const [name, changed] of Object.entries(CASES)) {
  const steps = [],
    ends = [];
  for (let seed = 0; seed < SEEDS; seed++) {
    const training = begin(seed);
    let at = Infinity,
      spread = NaN;
    for (let step = 1; step <= STEPS; step++) {
      advance(training, { ...BOTH, ...changed });
      if (step % 5) continue;
      spread = spreadOf(places(training).points).spread;
      if (spread < COLLAPSED) at = Math.min(at, step);
    }
    steps.push(at);
    ends.push(spread);
  }
  const collapsed = steps.filter(Number.isFinite);
  console.log(
    `${name}: ${collapsed.length} of ${SEEDS} fell below ${COLLAPSED}, the last at step ${Math.max(0, ...collapsed)};`,
    `spread at the end ${Math.min(...ends).toFixed(3)} to ${Math.max(...ends).toFixed(3)}`,
  );
}
