// What can be chosen in the live loss view.

export const VIEWS = { weight: "Weight on each pair", score: "Similarity", grad: "Gradient", mask: "Who is what" };

export const PANELS = {
  none: "Nothing more",
  scores: "Margin",
  grads: "Gradients",
  curves: "Over the knob",
  formula: "Formula",
  two: "Two settings",
};

export const ORDERS = { group: "by group", cluster: "by cluster" };
