// The knob of a loss on a slider of 1,000 positions, linear or logarithmic.

function toSlider(knob, v) {
  const t = knob.log ? Math.log(v / knob.low) / Math.log(knob.high / knob.low) : (v - knob.low) / (knob.high - knob.low);
  return Math.round(1000 * t);
}

function fromSlider(knob, position) {
  const t = position / 1000;
  const v = knob.log ? knob.low * Math.pow(knob.high / knob.low, t) : knob.low + t * (knob.high - knob.low);
  return Number(v.toPrecision(4));
}

/** A part's value, its kernel and what is read beside its slider. */
function setKnob(part, v) {
  part.value = v;
  if (part.kernel && part.kernel.knob) part.kernel[part.kernel.knob] = v;
  part.readout.textContent = v < 0.1 ? v.toFixed(4) : v.toFixed(3);
  part.slider.setAttribute("aria-valuetext", part.readout.textContent);
}
