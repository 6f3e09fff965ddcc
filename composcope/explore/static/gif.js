// GIF files: colours by median cut, pixels by LZW (the format's appendix F).

const COLOURS = 256;

// A palette of at most 256 colours: the box of colours with the widest side is cut in half, again and again.
function palette(frames) {
  const counts = new Map();
  for (const { data } of frames) {
    for (let at = 0; at < data.length; at += 4) {
      const key = ((data[at] >> 2) << 12) | ((data[at + 1] >> 2) << 6) | (data[at + 2] >> 2);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  const all = [...counts].map(([key, count]) => ({ key, count, rgb: [key >> 12, (key >> 6) & 63, key & 63] }));
  const boxes = [box(all)];
  while (boxes.length < COLOURS) {
    const widest = boxes.reduce((best, one) => (one.width * Math.sqrt(one.count) > best.width * Math.sqrt(best.count) ? one : best));
    if (widest.width === 0) break;
    boxes.splice(boxes.indexOf(widest), 1, ...cut(widest));
  }
  const colours = boxes.map(mean);
  const index = new Map();
  boxes.forEach((one, number) => one.entries.forEach(({ key }) => index.set(key, number)));
  return { colours, index };
}

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
  return [0, 1, 2].map((axis) => Math.round((4 * entries.reduce((sum, e) => sum + e.count * e.rgb[axis], 0)) / count + 1.5));
}

function compressed(indices) {
  const bytes = [];
  let bits = 0, held = 0, width, next, table;
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
    table = new Map();
    next = COLOURS + 2;
    width = 9;
  };
  reset();
  emit(COLOURS);
  let prefix = indices[0];
  for (let at = 1; at < indices.length; at++) {
    const key = prefix * COLOURS + indices[at];
    if (table.has(key)) {
      prefix = table.get(key);
      continue;
    }
    emit(prefix);
    if (next === 4096) {
      emit(COLOURS);
      reset();
    } else {
      if (next === 1 << width) width++;
      table.set(key, next++);
    }
    prefix = indices[at];
  }
  emit(prefix);
  emit(COLOURS + 1);
  if (held) bytes.push(bits & 255);
  return bytes;
}

// Frames are ImageData of one size; delays are hundredths of a second.
export function gif(frames, delays) {
  const { width, height } = frames[0];
  const { colours, index } = palette(frames);
  const out = [];
  const short = (value) => out.push(value & 255, value >> 8);
  const ascii = (text) => out.push(...[...text].map((letter) => letter.charCodeAt(0)));
  ascii("GIF89a");
  short(width);
  short(height);
  out.push(0xf7, 0, 0);
  for (let number = 0; number < COLOURS; number++) out.push(...(colours[number] ?? [0, 0, 0]).map((part) => Math.min(255, part)));
  out.push(0x21, 0xff, 11);
  ascii("NETSCAPE2.0");
  out.push(3, 1, 0, 0, 0);
  frames.forEach(({ data }, number) => {
    out.push(0x21, 0xf9, 4, 4);
    short(delays[number]);
    out.push(0, 0, 0x2c, 0, 0, 0, 0);
    short(width);
    short(height);
    out.push(0, 8);
    const indices = new Uint8Array(width * height);
    for (let at = 0; at < indices.length; at++) {
      const key = ((data[4 * at] >> 2) << 12) | ((data[4 * at + 1] >> 2) << 6) | (data[4 * at + 2] >> 2);
      indices[at] = index.get(key);
    }
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
