// How groups on a circle are told apart: by color and by shape. Blue and orange belong to pull and push.

const COLORS = ["#6F55BD", "#E3B52E", "#14A778", "#D06FA8", "#A5543F"],
  SHAPES = ["disc", "square", "triangle", "diamond"];

/**
 * The color and shape of a group: as many pairs as COLORS times SHAPES, since their numbers have no common divisor.
 *
 * @param {number} k
 */
export function lookOf(k) {
  return { color: COLORS[k % COLORS.length], shape: SHAPES[k % SHAPES.length] };
}

/**
 * Draw the mark of a group, with a darker rim of the same hue.
 *
 * @param {CanvasRenderingContext2D} g
 * @param {{ color: string, shape: string }} look
 * @param {number[]} at
 * @param {number} r
 */
export function drawMark(g, { color, shape }, [x, y], r) {
  g.beginPath();
  if (shape === "disc") g.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === "square") g.rect(x - r * 0.9, y - r * 0.9, 1.8 * r, 1.8 * r);
  else if (shape === "triangle") {
    g.moveTo(x, y - r * 1.2);
    g.lineTo(x + r * 1.1, y + r);
    g.lineTo(x - r * 1.1, y + r);
  } else {
    g.moveTo(x, y - r * 1.3);
    g.lineTo(x + r * 1.3, y);
    g.lineTo(x, y + r * 1.3);
    g.lineTo(x - r * 1.3, y);
  }
  g.closePath();
  g.fillStyle = color;
  g.fill();
  g.strokeStyle = `color-mix(in srgb, ${color} 75%, black)`;
  g.lineWidth = 0.75;
  g.stroke();
}
