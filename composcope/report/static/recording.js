(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const put = (svg, tag, at) => {
    const node = document.createElementNS(SVG, tag);
    for (const name in at) node.setAttribute(name, at[name]);
    svg.append(node);
  };
  const ring = (svg, tag, at, colour) => {
    const under = {stroke: "#16181b", "stroke-opacity": .6, "stroke-width": 3};
    put(svg, tag, {...at, fill: "none", ...under});
    put(svg, tag, {...at, fill: "none", stroke: colour, "stroke-width": 1.4});
  };
  const dot = (svg, [u, v], r) => {
    const looks = {fill: "#d55e00", stroke: "#fff", "stroke-width": .8};
    put(svg, "circle", {cx: 100 * u, cy: 100 * v, r, ...looks});
  };
  const tile = (box, source, column, columns, row, rows) => {
    box.style.backgroundImage = `url(${source})`;
    box.style.backgroundSize = `${100 * columns}% ${100 * rows}%`;
    const part = (at, count) => count > 1 ? 100 * at / (count - 1) : 0;
    box.style.backgroundPosition = `${part(column, columns)}% ${part(row, rows)}%`;
  };
  const length = (model, data, row) => {
    const marks = data.marks[row];
    model.querySelectorAll("i").forEach((box, column) => {
      tile(box, model.dataset.sprite, column, data.count, row, data.rows);
      const svg = box.firstChild;
      svg.replaceChildren();
      for (const [u, v] of marks.found[column]) {
        ring(svg, "circle", {cx: 100 * u, cy: 100 * v, r: 6.25}, "#fff");
      }
      for (const place of marks.asked[column]) dot(svg, place, 2.2);
    });
    model.querySelector(".rec-words").textContent = marks.words;
  };
  const look = (model, data, level, pixel) => {
    const box = model.querySelector("i"), svg = box.querySelector("svg");
    tile(box, model.dataset.sprite, level, data.levels, 0, 1);
    tile(box.querySelector("u"), model.dataset.heat, pixel, data.pixels.length, level, data.levels);
    svg.replaceChildren();
    const [high, wide] = data.map, [row, column] = data.pixels[pixel];
    const side = data.squares[level][pixel];
    const x = 100 * (column + .5) / wide, y = 100 * (row + .5) / high;
    const w = 100 * side / wide, h = 100 * side / high;
    ring(svg, "rect", {x: x - w / 2, y: y - h / 2, width: w, height: h}, "#56b4e9");
    const acts = data.influences[level][pixel], most = Math.max(...acts, 1e-12);
    data.places.forEach((place, k) => dot(svg, place, 1 + 3.5 * acts[k] / most));
    ring(svg, "path", {d: `M${x - 3} ${y}h6M${x} ${y - 3}v6`}, "#fff");
    model.querySelector(".rec-words").textContent = `looks ${side} pixels wide`;
  };
  for (const figure of document.querySelectorAll("figure.rec")) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const models = [...figure.querySelectorAll(".rec-model")];
    const input = figure.querySelector("input"), ticks = JSON.parse(input.dataset.ticks);
    const buttons = [...figure.querySelectorAll("[data-pixel]")];
    let pixel = 0;
    const show = () => {
      const at = Number(input.value);
      figure.querySelector("output").textContent = ticks[at];
      input.setAttribute("aria-valuetext", ticks[at]);
      buttons.forEach((button, index) => button.setAttribute("aria-pressed", index === pixel));
      models.forEach((model, index) => figure.dataset.kind === "length"
        ? length(model, data[index], at) : look(model, data[index], at, pixel));
    };
    input.addEventListener("input", show);
    const choose = (index) => { pixel = index; show(); };
    const nearest = ({pixels, map: [high, wide]}, u, v) => {
      const off = ([row, column]) => Math.hypot((column + .5) / wide - u, (row + .5) / high - v);
      const away = pixels.map(off);
      return away.indexOf(Math.min(...away));
    };
    buttons.forEach((button, index) => button.addEventListener("click", () => choose(index)));
    models.forEach((model, index) => {
      model.querySelector(".rec-large")?.addEventListener("click", (event) => {
        const box = event.currentTarget.getBoundingClientRect();
        const u = (event.clientX - box.left) / box.width;
        const v = (event.clientY - box.top) / box.height;
        choose(nearest(data[index], u, v));
      });
    });
    show();
  }
})();
