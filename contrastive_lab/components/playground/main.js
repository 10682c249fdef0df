// The playground: an encoder that learns in the browser while its temperature is dragged.

import { build, show } from "./layout.js";
import { session } from "./session.js";
import { readSettings } from "./setting.js";
import { drawSphere, moveTo, sphere } from "./sphere.js";
import { tell } from "./status.js";
import { meanOf } from "./training.js";
import { el } from "../shared/dom.js";
import { _, mountIn } from "../shared/locale.js";
import { languageOf, unpack } from "../shared/transport.js";

const HISTORY = 600, // points of a curve; of a longer course every second, fourth, … is kept
  FRAME = 30, // milliseconds between two frames that nobody moves: the training needs the time
  LINK = 400, // milliseconds without a change, after which an address is written
  STARTLED = 10000; // milliseconds in which a worker has to answer

/**
 * Fills an element with what `pack` of shared/mount.py gives; returns what takes it away.
 *
 * @type {(parent: any, blob: Uint8Array, host: Host) => () => void}
 */
export function mount(parent, blob, host) {
  if (!parent._playground) parent._playground = begin(parent, unpack(blob), host);
  const part = parent._playground;
  return () => {
    cancelAnimationFrame(part.frame);
    document.removeEventListener("visibilitychange", part.hide);
    part.observer.disconnect();
    part.end();
    part.root.remove();
    parent._playground = null;
  };
}

/** @param {PartArguments} component */
export default function ({ parentElement, data, setStateValue }) {
  return mountIn(mount, parentElement, data, languageOf(data), { report: setStateValue });
}

function begin(parent, given, host) {
  const { meta } = given,
    images = Float32Array.from(given.images, (v) => v / 255),
    { shape, learned, kernels, classes } = meta,
    labels = given.labels ? new Int16Array(given.labels.buffer) : null,
    data = { images, mean: meanOf(images, shape[0] * shape[1], learned), labels, shape, learned, kernels };
  /** @type {any} */
  const part = { data, classes, host, isRunning: false, edited: 0, fault: "", balls: [], last: performance.now() };
  Object.assign(part, readSettings(host.settings || meta.settings, Boolean(labels)), actions(part));
  build(part);
  parent.append(part.root);
  part.observer = new ResizeObserver(() => schedule(part));
  part.observer.observe(part.stage);
  part.hide = () => document.hidden && part.setRunning(false);
  document.addEventListener("visibilitychange", part.hide);
  arrange(part);
  show(part);
  start(part, meta.worker);
  return part;
}

/** The training in a worker; where none answers, in slices on the page. */
function start(part, source) {
  const begun = (post, end) => {
    part.end?.();
    Object.assign(part, { post, end });
    post({ kind: "start", data: part.data, settings: part.settings, seed: part.seed });
    post({ kind: "run", running: part.isRunning });
  };
  const onPage = () => begun(session(hear.bind(null, part)), () => part.post({ kind: "run", running: false }));
  try {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" })),
      worker = new Worker(address),
      late = setTimeout(onPage, STARTLED),
      end = () => {
        clearTimeout(late);
        worker.terminate();
      };
    worker.onmessage = ({ data }) => {
      clearTimeout(late);
      if (data) hear(part, data);
    };
    worker.onerror = onPage;
    begun((message) => worker.postMessage(message), end);
  } catch {
    onPage(); // a page that may start none
  }
}

function hear(part, message) {
  if (!part.root.isConnected) return;
  if (message.kind === "broken") {
    part.isRunning = false;
    part.fault = _("The loss is no longer a number. These are the last good weights: choose a smaller learning rate.");
    return show(part);
  }
  if (message.sides.length !== part.settings.length) return; // of before a twin came or went
  part.state = message;
  message.sides.forEach((side, k) => {
    const course = part.history[k];
    if (side.step === 0) course.length = 0; // it begins again
    if (side.step !== course.at(-1)?.[0]) course.push([side.step, side.knn]);
    if (course.length > HISTORY) part.history[k] = course.filter((_point, q) => q % 2 === 0);
    moveTo(part.balls[k], side.points);
  });
  part.isNew = true;
  schedule(part);
}

/** What the knobs and buttons do. */
function actions(part) {
  const send = () => {
    part.fault = "";
    part.post({ kind: "set", settings: part.settings });
    show(part);
    link(part);
  };
  return {
    setRunning(running) {
      part.isRunning = running;
      part.fault = running ? "" : part.fault;
      part.post({ kind: "run", running });
      show(part);
      schedule(part);
    },
    step: () => part.post({ kind: "step" }),
    restart(seed) {
      part.seed = seed;
      part.fault = "";
      part.post({ kind: "restart", seed });
      link(part);
    },
    change(some) {
      Object.assign(part.settings[part.edited], some);
      send();
    },
    edit(which) {
      part.edited = which;
      show(part);
      part.isNew = true;
      schedule(part);
    },
    /** A twin differs at first by its temperature; where the loss has none it is the same until a knob is turned. */
    turnTwin() {
      const [own, other] = part.settings;
      part.edited = 0;
      part.settings = other ? [own] : [own, { ...own, temperature: own.temperature > 0.1 ? 0.02 : 0.5 }];
      arrange(part);
      send();
    },
  };
}

/** As many spheres as there are settings, each with its caption. */
function arrange(part) {
  part.balls = part.settings.map(() => sphere(part.data, part.classes, () => schedule(part)));
  part.history = part.settings.map(() => []);
  part.stage.replaceChildren(...part.balls.map((ball) => el("figure", {}, ball.canvas, ball.caption)));
}

/** The setting in the address, once nobody turns a knob. */
function link(part) {
  clearTimeout(part.linked);
  part.linked = setTimeout(() => part.host.report("setting", JSON.stringify([part.seed, ...part.settings])), LINK);
}

function schedule(part) {
  part.frame ||= requestAnimationFrame((now) => {
    part.frame = 0;
    if (!part.root.isConnected) return;
    if (now - part.last < FRAME && !part.balls.some((ball) => ball.isHeld)) return schedule(part);
    const moving = part.balls.map((ball) => drawSphere(ball, now, now - part.last));
    part.last = now;
    if (part.isNew) {
      part.isNew = false;
      tell(part);
      part.balls.forEach((ball, k) => {
        const values = { n: ball.n, step: part.state.sides[k].step };
        ball.canvas.ariaLabel = _("{n} samples on a sphere after {step} steps. Arrow keys turn it.", values);
      });
    }
    if (moving.some(Boolean)) schedule(part);
  });
}
