// One picture of a sheet of them, as large as its place.

/**
 * @param {HTMLCanvasElement} canvas
 * @param {ImageBitmap | null} sheet null: it has not come yet
 * @param {{across: number, tile: number}} parts
 * @param {number} number which of the sheet's; −1: there is none
 * @param {string} text for who does not see it
 */
export function drawPicture(canvas, sheet, { across, tile }, number, text) {
  canvas.setAttribute("aria-label", text);
  canvas.width = canvas.height = tile;
  canvas.classList.toggle("small", tile <= 32); // its pixels are shown as they are
  canvas.hidden = number < 0;
  if (!sheet || number < 0) return;
  const g = canvas.getContext("2d");
  g.drawImage(sheet, (number % across) * tile, Math.floor(number / across) * tile, tile, tile, 0, 0, tile, tile);
}
