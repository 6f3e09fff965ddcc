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
  const peak = Math.max(...rows.map((row) => Math.max(...row))) || 1;
  const data = new ImageData(wide, high);
  rows.flat().forEach((value, index) => {
    const share = Math.sqrt(Math.max(0, value) / peak);
    data.data.set([...colour(share), 255 * Math.min(0.92, 1.3 * share)], 4 * index);
  });
  put(canvas, data);
}

export function put(canvas, data) {
  canvas.width = data.width;
  canvas.height = data.height;
  canvas.getContext("2d", { willReadFrequently: true }).putImageData(data, 0, 0);
}

export function clear(canvas) {
  canvas.getContext("2d", { willReadFrequently: true }).clearRect(0, 0, canvas.width, canvas.height);
}

export async function bitmap(png) {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  return image;
}

async function pixels(png) {
  const image = await bitmap(png);
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.drawImage(image, 0, 0);
  return pen.getImageData(0, 0, canvas.width, canvas.height);
}

// Grey where two pictures agree, elsewhere lighter or darker by their difference.
export async function difference(one, other) {
  const [a, b] = await Promise.all([pixels(one), pixels(other)]);
  for (let index = 0; index < a.data.length; index++) {
    a.data[index] = index % 4 === 3 ? 255 : 128 + (a.data[index] - b.data[index]);
  }
  return a;
}
