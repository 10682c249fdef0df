// Thumbnails of anchors and candidates.

/**
 * @param {LossViewState} lab
 * @param {CanvasRenderingContext2D} g
 * @param {number} index
 * @param {number} x
 * @param {number} y
 * @param {number} size
 */
export function thumb(lab, g, index, x, y, size) {
  if (!lab.sprite || index === undefined || index < 0) return;
  const { tile, across } = lab.meta.thumbnails;
  g.drawImage(lab.sprite, (index % across) * tile, Math.floor(index / across) * tile, tile, tile, x, y, size, size);
}
