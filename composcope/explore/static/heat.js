// Maps over pictures: what a pixel looks at, what a condition does, and the difference that it makes.

// Dark violet to pale yellow: brightness alone tells more from less, whatever colours one sees.
const STOPS = [[40, 11, 84], [120, 28, 109], [198, 63, 79], [243, 132, 41], [250, 205, 70], [252, 255, 180]];

function colour(share) {
  const at = share * (STOPS.length - 1);
  const low = Math.min(STOPS.length - 2, Math.floor(at));
  return STOPS[low].map((part, index) => part + (at - low) * (STOPS[low + 1][index] - part));
}

// Paints rows of numbers; the least is clear, the greatest covers. The square root lets small values be seen.
export function paint(canvas, rows) {
  const high = rows.length, wide = rows[0].length;
  canvas.width = wide;
  canvas.height = high;
  const peak = Math.max(...rows.map((row) => Math.max(...row))) || 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const data = pen.createImageData(wide, high);
  rows.flat().forEach((value, index) => {
    const share = Math.sqrt(Math.max(0, value) / peak);
    data.data.set([...colour(share), 255 * Math.min(0.92, 1.3 * share)], 4 * index);
  });
  pen.putImageData(data, 0, 0);
}

export function clear(canvas) {
  canvas.getContext("2d", { willReadFrequently: true }).clearRect(0, 0, canvas.width, canvas.height);
}

export async function pixels(png) {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.drawImage(image, 0, 0);
  return pen.getImageData(0, 0, canvas.width, canvas.height);
}

// Grey where two pictures agree, elsewhere lighter or darker by their difference.
export async function difference(canvas, one, other) {
  const [a, b] = await Promise.all([pixels(one), pixels(other)]);
  canvas.width = a.width;
  canvas.height = a.height;
  for (let index = 0; index < a.data.length; index++) {
    a.data[index] = index % 4 === 3 ? 255 : 128 + (a.data[index] - b.data[index]);
  }
  canvas.getContext("2d", { willReadFrequently: true }).putImageData(a, 0, 0);
}
