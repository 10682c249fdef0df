// Types of what the browser parts pass around. Only tsc reads this file.

/** A loss's own metadata, as `Loss.kernel` in contrastive_core/losses gives it. */
interface Kernel {
  family: "softmax" | "hinge" | "sigmoid" | "robust";
  form?: "pair" | "triplet";
  knob: string | null; // the first that is dragged
  temperature?: number;
  denominator?: "all" | "own_positive";
  aggregate?: "out" | "in" | "log_sum";
  scale?: "none" | "tau_over_base";
  base?: number | null;
  sign?: number;
  negative_margin?: number | null;
  positive_share?: number | null;
  positive?: "in" | "out";
  weighting?: "none" | "von_mises";
  sigma?: number;
  log_mean?: number; // of the batch, where only some of its anchors are computed
  negatives?: "plain" | "hard";
  beta?: number;
  tau_plus?: number;
  bias?: number;
  q?: number;
  density_weight?: number;
  margin?: number;
  squared?: boolean;
  mining?: "all" | "semi_hard" | "hard";
  average?: "all" | "active";
}

/** What a kernel computes for n anchors and w candidates. */
interface KernelOutput {
  n: number;
  w: number;
  value: number;
  valid: number;
  loss: Float64Array | Float32Array; // (n)
  weight: Float64Array; // (n)
  effective: Float64Array; // (n) effective negatives
  negatives: Float64Array; // (n)
  active: Float64Array; // (n) active pairs or triplets
  hard: Float64Array; // (n) of these the hard ones
  leftOut: Float64Array; // (n) negatives left out by the margin
  kept?: Uint8Array; // (n·w) the mask without them
  pair: Float32Array; // (n·w) weight on pairs
  grad: Float32Array; // (n·w) ∂L_i/∂s_ij
  sorted: any[];
  shares: PushShares | null; // of an anchor, until the loss is computed again
}

/** How the push on an anchor's negatives is shared. */
interface PushShares {
  anchor: number;
  grad: Float32Array;
  total: number;
  hardest: number | undefined; // column
  curve: number[]; // share of the k hardest
  counted: number;
}

/** Loss, weight and gradients of anchor i, whose row (w) of scores and mask begins at `at`, into `out`. */
type RowKernel = (
  S: Scores,
  M: Uint8Array,
  at: number,
  w: number,
  kernel: Kernel,
  i: number,
  out: KernelOutput,
) => void;

/** Scores: float32 as the server sent them, float64 on the circle. */
type Scores = Float32Array | Float64Array;

/** What is dragged, as Knob in knob.py. */
interface Knob {
  label: string;
  low: number;
  high: number;
  value: number;
  log: boolean;
  is_whole?: boolean;
}

/** Where a part stands: in the app, in a notebook, or in a file. */
interface Host {
  report: (name: string, value: unknown) => void; // hears of what was let go
  settings?: string; // what its address holds, where that is the host's
}

/** What Streamlit gives to a part's main function. */
interface PartArguments {
  data: Uint8Array;
  parentElement: any;
  setStateValue: (name: string, value: unknown) => void;
}

/** The live loss view: a batch, a loss on it, what is chosen, and its elements by name. */
interface LossViewState {
  key: string;
  n: number;
  w: number;
  S: Float32Array; // (n·w) scores
  M: Uint8Array; // (n·w) 0 not comparable, 1 positive, 2 negative, 3 self
  meta: any; // as loss_view/__init__.py packs it
  kernel: Kernel | null;
  out: KernelOutput | null;
  fixed: KernelOutput | null; // what the library computed, where there is no kernel
  value: number; // of the knob
  anchor: number;
  hover: [number | null, number | null] | null;
  rows: number[]; // the matrix's order
  columns: number[];
  cache: any; // what depends on the batch and the anchor, not on the knob
  ink: string; // colors of the theme
  paper: string;
  accent: string;
  redraw: () => void;
  [element: string]: any;
}

/** Draws a panel of the curves; gives its words. */
type PanelDraw = (lab: LossViewState, g: CanvasRenderingContext2D, width: number, height: number) => string;

/** Points on a circle. */
interface CircleState {
  n: number;
  angles: Float64Array;
  group: number[];
  S: Float64Array;
  M: Uint8Array;
  force: Float64Array;
  out: KernelOutput;
  kernel: Kernel;
  meta: any; // as circle/__init__.py packs it
  spots: any[]; // [x, y] of each point as it is drawn
  trail: Float64Array[]; // angles of the last steps
  [element: string]: any;
}

/** A map of points. */
interface ScatterState {
  n: number; // points
  rows: number; // of the data; n is a multiple of it
  xy: Float32Array;
  color: Uint8Array;
  picked: number[];
  meta: any; // as scatter/__init__.py packs it
  redraw: () => void;
  [element: string]: any;
}

/** One sample's loss. */
interface SampleViewState {
  S: Float32Array;
  M: Uint8Array;
  kernel: Kernel;
  out: KernelOutput | null;
  meta: any; // as sample_view/__init__.py packs it
  [element: string]: any;
}
