// A lesson is done when the state says so, and not before.

import assert from "node:assert/strict";
import { test } from "node:test";

import { checkLesson, doneOf } from "../../contrastive_lab/components/shared/lesson.js";
import { CHECKS, gaugeOf, judge } from "../../contrastive_lab/components/shared/lesson_checks.js";

const holds = (name, at, facts) => judge([{ name, at }], facts)[0].holds;

test("each check holds on its own side of the threshold", () => {
  assert.ok(!holds("hardest_share_above", 0.5, { share: 0.5 }));
  assert.ok(holds("hardest_share_above", 0.5, { share: 0.5001 }));
  assert.ok(!holds("negatives_at_least", 10, { negatives: 9.99 }));
  assert.ok(holds("negatives_at_least", 10, { negatives: 10 }));
  for (const [pushed, done] of [
    [0, false],
    [1, true],
    [3, true],
    [4, false],
  ])
    assert.equal(holds("pairs_pushed_from_one_to", 3, { negatives: pushed, form: "pair" }), done);
  assert.ok(!holds("pairs_pushed_from_one_to", 3, { negatives: 2, form: "triplet" }));
  assert.ok(!holds("triplets_pushed_at_least", 4, { negatives: 6, form: "pair" }));
  assert.ok(!holds("triplets_pushed_at_least", 4, { negatives: 3, form: "triplet" }));
  assert.ok(holds("triplets_pushed_at_least", 4, { negatives: 4, form: "triplet" }));
  assert.ok(!holds("alignment_below", 0.05, { alignment: 0.05 }));
  assert.ok(holds("alignment_below", 0.05, { alignment: 0.01 }));
  assert.ok(!holds("other_view", 0, { otherView: false }));
  assert.ok(holds("other_view", 0, { otherView: true }));
  assert.ok(!holds("collapsed_without_stop_gradient", 0.1, { spreadWithoutStopGradient: 0.1 }));
  assert.ok(holds("collapsed_without_stop_gradient", 0.1, { spreadWithoutStopGradient: 0.09 }));
  assert.ok(!holds("collapsed_without_predictor", 0.1, { spreadWithoutPredictor: 0.1 }));
  assert.ok(holds("collapsed_without_predictor", 0.1, { spreadWithoutPredictor: 0.09 }));
  assert.ok(!holds("steps_with_both_at_least", 500, { stepsWithBoth: 499 }));
  assert.ok(holds("steps_with_both_at_least", 500, { stepsWithBoth: 500 }));
  assert.ok(!holds("variance_share_below", 0.5, { varianceShare: 0.5, deviation: 0.5 }));
  assert.ok(holds("variance_share_below", 0.5, { varianceShare: 0.49, deviation: 0.5 }));
  assert.ok(!holds("variance_share_below", 0.5, { varianceShare: 0, deviation: 0 })); // no hinge at all
  assert.ok(!holds("off_diagonal_share_above", 0.5, { offDiagonalShare: 0.5 }));
  assert.ok(holds("off_diagonal_share_above", 0.5, { offDiagonalShare: 0.51 }));
  assert.ok(!holds("positives_at_least", 2, { positives: 1 }));
  assert.ok(holds("positives_at_least", 2, { positives: 2 }));
  assert.ok(!holds("weighted_share_above", 0.7, { share: 0.9, isHard: false }));
  assert.ok(!holds("weighted_share_above", 0.7, { share: 0.7, isHard: true }));
  assert.ok(holds("weighted_share_above", 0.7, { share: 0.71, isHard: true }));
  assert.ok(!holds("left_out_at_least", 4, { leftOut: 3 }));
  assert.ok(holds("left_out_at_least", 4, { leftOut: 4 }));
  assert.ok(!holds("softmax_cooled_to", 0.1, { family: "softmax", temperature: 0.11, ratio: 1 }));
  assert.ok(holds("softmax_cooled_to", 0.1, { family: "softmax", temperature: 0.1, ratio: 1 }));
  assert.ok(!holds("softmax_cooled_to", 0.1, { family: "sigmoid", temperature: 0.1, ratio: 1 }));
  for (const [ratio, done] of [
    [0.49, false],
    [0.5, true],
    [2, true],
    [2.1, false],
  ])
    assert.equal(holds("sigmoid_balanced_within", 2, { family: "sigmoid", ratio }), done);
  assert.ok(!holds("sigmoid_balanced_within", 2, { family: "softmax", ratio: 1 }));
  assert.ok(!holds("form_is_in", 0, { form: "out", positives: 13 }));
  assert.ok(!holds("form_is_in", 0, { form: "in", positives: 1 })); // labels are off
  assert.ok(holds("form_is_in", 0, { form: "in", positives: 13 }));
});

test("a state that is not known holds nothing", () => {
  for (const name of Object.keys(CHECKS)) {
    const [{ holds, now }] = judge([{ name, at: 0 }], {});
    assert.ok(!holds, name);
    assert.equal(now, "–");
  }
  assert.ok(!holds("alignment_below", 0.05, { alignment: NaN }));
});

test("each check says whether it holds and what it sees", () => {
  const checks = [
    { name: "positives_at_least", at: 2 },
    { name: "form_is_in", at: 0 },
  ];
  const now = (facts) => judge(checks, facts).map((c) => c.now),
    all = (facts) => judge(checks, facts).map((c) => c.holds);
  assert.deepEqual(all({ positives: 13, form: "out" }), [true, false]);
  assert.deepEqual(all({ positives: 13, form: "in" }), [true, true]);
  assert.deepEqual(now({ positives: 13, form: "out" }), ["13", "out"]);
  assert.deepEqual(judge([{ name: "hardest_share_above", at: 0.5 }], { share: 0.384 })[0].now, "38 %");
  assert.deepEqual(judge([{ name: "negatives_at_least", at: 10 }], { negatives: 2.71 })[0].now, "2.7");
});

test("a gauge shows how far a check is, and where it holds", () => {
  const gauge = (name, at, facts) => gaugeOf({ name, at }, facts);
  assert.deepEqual(gauge("hardest_share_above", 0.5, { share: 0.25 }), { now: 0.25, from: 0.505, to: 1 });
  assert.deepEqual(gauge("pairs_pushed_from_one_to", 3, { negatives: 12, form: "pair" }), {
    now: 0,
    from: 0.75,
    to: 0.915,
  });
  assert.equal(gauge("softmax_cooled_to", 0.1, { family: "softmax", temperature: 0.05, ratio: 1 }).now, 1);
  assert.equal(gauge("other_view", 0, { otherView: false }), null);
  assert.equal(gauge("left_out_at_least", 4, {}), null);
  for (const [name, { scale }] of Object.entries(CHECKS)) {
    if (!scale) continue;
    const found = gauge(name, /above|below|collapsed|cooled/.test(name) ? 0.5 : 2, known(scale[0], name));
    assert.ok(found.now === 0 && found.from > 0 && found.from <= found.to && found.to <= 1, name);
  }
});

/** Facts in which a check finds a number. */
function known(v, name) {
  const numbers = "alignment share negatives ratio varianceShare offDiagonalShare leftOut stepsWithBoth temperature",
    spreads = { spreadWithoutPredictor: v, spreadWithoutStopGradient: v, deviation: 1, isHard: true },
    form = name.split("s_")[0],
    family = name.split("_")[0];
  return { ...Object.fromEntries(numbers.split(" ").map((key) => [key, v])), ...spreads, form, family };
}

/** A panel as buildLesson makes it, of elements that only keep what they are told. @returns {any} */
function panel(lesson) {
  const element = () => ({
    classList: { toggle() {}, contains: () => false },
    textContent: "",
    hidden: false,
    style: {},
    children: [{ style: {} }, { style: {} }],
    closest: () => null,
  });
  const words = { done: "Done.", before: "You finished this lesson before." },
    goal = { checks: [{ name: "sigmoid_balanced_within", at: 2 }], goals: ["{now}"], said: "", region: [], words },
    parts = Object.fromEntries(["root", "said", "goals", "forward", "gauge", "stamp"].map((k) => [k, element()])),
    told = [];
  const state = { met: [], first: [], taken: [], frames: [], captions: [element(), element()], done: false };
  return { ...parts, ...state, told, send: (what) => told.push(what), lesson: { ...goal, ...lesson } };
}

const ratio = (now) => () => ({ family: "sigmoid", ratio: now });

test("a goal that is only passed while dragging does not count", () => {
  const lesson = panel({});
  for (const now of [0.1, 1, 9]) checkLesson(lesson, ratio(now), {}, true);
  checkLesson(lesson, ratio(9), {}, false);
  assert.ok(!lesson.done && lesson.forward.hidden);
  checkLesson(lesson, ratio(1), {}, true);
  assert.match(lesson.goals.textContent, /✓/); // it is seen that it would count
  assert.equal(doneOf(lesson), 0);
  checkLesson(lesson, ratio(1), {}, false);
  assert.ok(lesson.done && !lesson.forward.hidden);
  assert.equal(lesson.told.length, 1); // so that it outlives a reload
  assert.deepEqual(doneOf({ ...lesson, lesson: { number: 10 } }), { number: 10, met: ["1.00"], isDone: true });
});

test("the way on from a lesson that was finished before stays open", () => {
  const lesson = panel({ finished: true });
  checkLesson(lesson, ratio(9), {}, false);
  assert.ok(!lesson.done && !lesson.forward.hidden);
});
