// Thumbnails of anchors and candidates.

export function thumb(lab, g, index, x, y, size) {
  if (!lab.sprite || index === undefined || index < 0) return;
  const { tile, across } = lab.meta;
  g.drawImage(lab.sprite, (index % across) * tile, Math.floor(index / across) * tile, tile, tile, x, y, size, size);
}
