// GIF files: colours by median cut, pixels by LZW (the format's appendix F).

const COLOURS = 256;

// A palette of at most 256 colours: the box of colours with the widest side is cut in half, again and again.
function palette(data) {
  const counts = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const key = keyOf(data, at);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const all = [...counts].map(([key, count]) => ({ key, count, rgb: [key >> 16, (key >> 8) & 255, key & 255] }));
  const boxes = [box(all)];
  while (boxes.length < COLOURS) {
    const widest = boxes.reduce((best, one) => (one.width * Math.sqrt(one.count) > best.width * Math.sqrt(best.count) ? one : best));
    if (widest.width === 0) break;
    boxes.splice(boxes.indexOf(widest), 1, ...cut(widest));
  }
  const colours = boxes.map(mean);
  return { colours, index: new Map(all.map(({ key, rgb }) => [key, nearest(colours, rgb)])) };
}

function nearest(colours, [r, g, b]) {
  let best = 0, least = Infinity;
  for (let number = 0; number < colours.length; number++) {
    const colour = colours[number];
    const away = (colour[0] - r) ** 2 + (colour[1] - g) ** 2 + (colour[2] - b) ** 2;
    if (away < least) [best, least] = [number, away];
  }
  return best;
}

const keyOf = (data, at) => (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];

function box(entries) {
  const sides = [0, 1, 2].map((axis) => {
    const values = entries.map(({ rgb }) => rgb[axis]);
    return values.reduce((a, b) => Math.max(a, b)) - values.reduce((a, b) => Math.min(a, b));
  });
  const width = Math.max(...sides);
  return { entries, width, axis: sides.indexOf(width), count: entries.reduce((sum, { count }) => sum + count, 0) };
}

function cut({ entries, axis, count }) {
  const ordered = [...entries].sort((a, b) => a.rgb[axis] - b.rgb[axis]);
  let seen = 0;
  let middle = ordered.findIndex((entry) => (seen += entry.count) >= count / 2) + 1;
  middle = Math.min(Math.max(middle, 1), ordered.length - 1);
  return [box(ordered.slice(0, middle)), box(ordered.slice(middle))];
}

function mean({ entries, count }) {
  return [0, 1, 2].map((axis) => Math.round(entries.reduce((sum, e) => sum + e.count * e.rgb[axis], 0) / count));
}

function compressed(indices) {
  const bytes = [];
  const table = new Int16Array(COLOURS * 4096); // the code of a code and the colour that follows it
  let bits = 0, held = 0, width, next;
  const emit = (code) => {
    bits |= code << held;
    held += width;
    while (held >= 8) {
      bytes.push(bits & 255);
      bits >>>= 8;
      held -= 8;
    }
  };
  const reset = () => {
    table.fill(-1);
    next = COLOURS + 2;
    width = 9;
  };
  reset();
  emit(COLOURS);
  let prefix = indices[0];
  for (let at = 1; at < indices.length; at++) {
    const key = prefix * COLOURS + indices[at];
    if (table[key] >= 0) {
      prefix = table[key];
      continue;
    }
    emit(prefix);
    if (next === 4096) {
      emit(COLOURS);
      reset();
    } else {
      if (next === 1 << width) width++;
      table[key] = next++;
    }
    prefix = indices[at];
  }
  emit(prefix);
  emit(COLOURS + 1);
  if (held) bytes.push(bits & 255);
  return bytes;
}

// Frames are ImageData of one size, each with colours of its own; delays are hundredths of a second.
export function gif(frames, delays) {
  const { width, height } = frames[0];
  const out = [];
  const short = (value) => out.push(value & 255, value >> 8);
  const ascii = (text) => out.push(...[...text].map((letter) => letter.charCodeAt(0)));
  ascii("GIF89a");
  short(width);
  short(height);
  out.push(0x70, 0, 0);
  out.push(0x21, 0xff, 11);
  ascii("NETSCAPE2.0");
  out.push(3, 1, 0, 0, 0);
  frames.forEach(({ data }, number) => {
    out.push(0x21, 0xf9, 4, 4);
    short(delays[number]);
    out.push(0, 0, 0x2c, 0, 0, 0, 0);
    short(width);
    short(height);
    out.push(0x87);
    const { colours, index } = palette(data);
    for (let number = 0; number < COLOURS; number++) out.push(...(colours[number] ?? [0, 0, 0]));
    out.push(8);
    const indices = new Uint8Array(width * height);
    for (let at = 0; at < indices.length; at++) indices[at] = index.get(keyOf(data, 4 * at));
    const bytes = compressed(indices);
    for (let at = 0; at < bytes.length; at += 255) {
      const block = bytes.slice(at, at + 255);
      out.push(block.length, ...block);
    }
    out.push(0);
  });
  out.push(0x3b);
  return new Blob([new Uint8Array(out)], { type: "image/gif" });
}
