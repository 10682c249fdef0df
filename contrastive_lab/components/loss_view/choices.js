// What can be chosen in the live loss view.

export const VIEWS = {
  weight: "Weight on each pair",
  score: "Similarity",
  grad: "Gradient",
  mask: "Positive or negative?",
};

export const PANELS = {
  none: "No panel",
  scores: "Margin",
  grads: "Gradients",
  curves: "Sweep",
  formula: "Formula",
  two: "Two settings",
};

export const ORDERS = { group: "by group", cluster: "by cluster" };
