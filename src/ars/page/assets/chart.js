// Curves over episodes, timesteps or time. Pointer or arrow keys read values; dragging or + and − zoom all charts.

const state = {
  task: 0, axis: "episodes", chosen: new Set(), look: -1, singles: false, zoom: null, matrix: "W",
};
let charts = [];
let clips = 0;
const drawCharts = () => charts.forEach((chart) => chart.draw());

const point = (x, y) => `${x.toFixed(1)},${y.toFixed(1)}`;

// The parts of a line between its gaps (nulls), as indices of their points.
function stretches(ys) {
  const found = [[]];
  ys.forEach((y, i) => y === null ? found.push([]) : found.at(-1).push(i));
  return found.filter((part) => part.length);
}

const pathOf = ({ xs, ys }, px, py) => stretches(ys).map((part) => {
  const points = part.map((i) => point(px(xs[i]), py(ys[i])));
  return `M${[points[0], ...points].join("L")}`; // a point alone is a dot, by its round cap
}).join("");

const areaOf = ({ xs, low, high }, px, py) => stretches(low).map((part) => {
  const edge = (ys) => part.map((i) => point(px(xs[i]), py(ys[i])));
  return `M${[...edge(high), ...edge(low).reverse()].join("L")}Z`;
}).join("");

// The value of a line at x by linear interpolation; null outside it and in a gap.
function valueAt({ xs, ys }, x) {
  const high = xs.findIndex((one) => one >= x), low = xs[high] === x ? high : high - 1;
  if (low < 0 || ys[low] === null || ys[high] === null) return null;
  return low === high ? ys[low] : ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / (xs[high] - xs[low]);
}

// lines() returns [{label, colour, xs, ys, low, high, thin, faded, shaded}]; limit is the threshold or null, and shaded
// has [from, to] of parts of the axis.
function makeChart({ label, height, lines, limit, unit, singlesInLegend }) {
  const margin = { left: 56, right: 14, top: 10, bottom: 40 };
  const help = "Arrow keys read the values, plus and minus zoom, 0 shows everything.";
  const svg = s("svg", { class: "plot", tabindex: "0", role: "group", "aria-label": `${label}. ${help}` });
  const legend = h("div", { class: "readout", "aria-live": "polite" });
  const reset = h("button", { type: "button", hidden: true, onclick: () => zoomTo(null) }, "Show everything");
  let cursor = null; // the x that is read
  let drag = null; // pixels {from, to}
  let now = null; // what is drawn: {series, x0, x1, all, inner, px, py, tall}
  let over = null; // the group above the curves

  function zoomTo(range) {
    state.zoom = range;
    cursor = null;
    drawCharts();
  }

  // The range of the vertical axis: all visible values, the threshold, and zero if it is near.
  function heights(series, x0, x1) {
    const within = (line, ys) => (ys ?? []).filter((y, i) => y !== null && line.xs[i] >= x0 && line.xs[i] <= x1);
    const seen = series.flatMap((line) => [line.ys, line.low, line.high].flatMap((ys) => within(line, ys)));
    if (limit !== null && !state.zoom) seen.push(limit);
    let low = seen.length ? Math.min(...seen) : 0;
    const high = seen.length ? Math.max(...seen) : 1;
    if (!state.zoom && low > 0 && low < 0.5 * high) low = 0;
    const room = 0.05 * (high - low || Math.abs(high) || 1);
    return [low === 0 ? 0 : low - room, high + room];
  }

  function draw() {
    const axis = AXES[state.axis], series = lines();
    const width = Math.max(260, svg.getBoundingClientRect().width);
    const inner = width - margin.left - margin.right, tall = height - margin.top - margin.bottom;
    const right = margin.left + inner, bottom = margin.top + tall;
    const all = [0, Math.max(0, ...series.flatMap((line) => line.xs)) || 1];
    const [x0, x1] = state.zoom ?? all, [y0, y1] = heights(series, x0, x1);
    const px = (x) => margin.left + inner * (x - x0) / (x1 - x0);
    const py = (y) => margin.top + tall * (1 - (y - y0) / (y1 - y0));
    now = { series, x0, x1, all, inner, px, py, tall };
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);

    const clip = `clip${++clips}`, content = [];
    content.push(s("clipPath", { id: clip }, s("rect", { x: margin.left, y: margin.top, width: inner, height: tall })));
    for (const y of ticks(y0, y1, tall / 38)) {
      const text = Math.abs(y) >= 1e4 ? compact.format(y) : String(Number(y.toPrecision(6)));
      content.push(s("line", { class: "grid", x1: margin.left, x2: right, y1: py(y), y2: py(y) }));
      content.push(s("text", { x: margin.left - 8, y: py(y) + 4, "text-anchor": "end" }, text));
    }
    for (const x of ticks(x0, x1, inner / 95, state.axis === "seconds"))
      content.push(s("text", { x: px(x), y: bottom + 17, "text-anchor": "middle" }, axis.tick(x)));
    content.push(s("text", { x: right, y: height - 4, "text-anchor": "end" }, axis.name.toLowerCase()));
    const shaded = series.flatMap((line) => line.shaded ?? []).map(([from, to]) =>
      s("rect", { class: "shaded", x: px(from), y: margin.top, width: px(to) - px(from), height: tall }));
    content.push(s("g", { "clip-path": `url(#${clip})` }, shaded, curves(series, px, py),
      limit !== null && s("line", { class: "limit", x1: margin.left, x2: right, y1: py(limit), y2: py(limit) })));
    if (!series.some((line) => line.ys.some((y) => y !== null)))
      content.push(s("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "Nothing to show yet"));
    over = s("g", {});
    svg.replaceChildren(...content, over);
    reset.hidden = !state.zoom;
    drawOver();
  }

  // What follows the pointer: the cursor, its values and the dragged range. The curves are not redrawn.
  function drawOver() {
    const { series, x0, x1, px, py, tall } = now, content = [];
    if (drag && drag.to !== null) {
      const from = Math.min(drag.from, drag.to), wide = Math.abs(drag.to - drag.from);
      content.push(s("rect", { class: "drag", x: from, y: margin.top, width: wide, height: tall }));
    }
    if (cursor !== null && cursor >= x0 && cursor <= x1) {
      const place = { x1: px(cursor), x2: px(cursor), y1: margin.top, y2: margin.top + tall };
      content.push(s("line", { class: "cursor", ...place }));
      for (const line of series.filter((one) => !one.thin || series.length < 12)) {
        const value = valueAt(line, cursor);
        if (value !== null) content.push(dot(px(cursor), py(value), line, { r: 3.5 }));
      }
    }
    over.replaceChildren(...content);
    drawLegend(series, AXES[state.axis]);
  }

  const dot = (cx, cy, line, more) => s("circle", { cx, cy, style: { fill: line.colour }, ...more });

  function curves(series, px, py) {
    const bands = series.filter((line) => line.low).map((line) =>
      s("path", { class: "band", d: areaOf(line, px, py), style: { fill: line.colour, opacity: 0.16 } }));
    const paths = series.map((line) => {
      const kind = line.thin ? "single" : "curve", opacity = line.faded ? 0.3 : line.thin ? 0.75 : 1;
      if (line.xs.length === 1 && line.ys[0] !== null)
        return dot(px(line.xs[0]), py(line.ys[0]), line, { class: kind, r: line.thin ? 3 : 4, style: { fill: line.colour, opacity } });
      const pen = { stroke: line.colour, strokeWidth: line.thin ? 1.2 : 2.2, opacity };
      const style = { ...pen, fill: "none", strokeLinejoin: "round", strokeLinecap: "round" };
      return s("path", { class: kind, d: pathOf(line, px, py), style });
    });
    return [bands, paths];
  }

  function drawLegend(series, axis) {
    const listed = series.filter((line) => !line.thin || (singlesInLegend && series.length < 12));
    const items = listed.map((line) => {
      const value = cursor === null ? null : valueAt(line, cursor);
      const key = h("i", { class: "key", style: { background: line.colour } });
      return h("span", {}, key, line.label, value !== null && h("b", {}, ` ${number(value)}${unit}`));
    });
    if (limit !== null) // here and not in the plot, where a curve would cross it
      items.push(h("span", { class: "limit-text" }, h("i", { class: "key dashed" }), `the paper's threshold ${number(limit)}`));
    const at = cursor === null ? [] : [h("b", {}, `${axis.name} ${axis.show(Math.round(cursor))}`)];
    legend.replaceChildren(...at, ...items);
  }

  // -- mouse, finger and keys ---------------------------------------------------------------------------------------

  const firstLine = () => now.series.find((line) => !line.thin) ?? now.series[0];
  const toX = (pixel) => now.x0 + (now.x1 - now.x0) * (pixel - margin.left) / now.inner;
  const pixelOf = (event) => {
    const pixel = event.clientX - svg.getBoundingClientRect().left;
    return Math.min(margin.left + now.inner, Math.max(margin.left, pixel));
  };
  const nearest = (x) => {
    const xs = firstLine()?.xs ?? [];
    return xs.length ? xs.reduce((best, one) => Math.abs(one - x) < Math.abs(best - x) ? one : best) : null;
  };
  const leave = () => {
    drag = null;
    cursor = null;
    drawOver();
  };
  svg.addEventListener("pointerdown", (event) => { drag = { from: pixelOf(event), to: null }; });
  svg.addEventListener("pointermove", (event) => {
    if (drag && event.buttons) drag.to = pixelOf(event);
    cursor = nearest(toX(pixelOf(event)));
    drawOver();
  });
  svg.addEventListener("pointerup", () => {
    const { from, to } = drag ?? { from: 0, to: null };
    drag = null;
    if (to !== null && Math.abs(to - from) > 8) zoomTo([toX(Math.min(from, to)), toX(Math.max(from, to))]);
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("pointercancel", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("dblclick", () => zoomTo(null));
  svg.addEventListener("keydown", (event) => {
    const xs = firstLine()?.xs ?? [];
    if (!xs.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = xs.length - 1, at = cursor === null ? null : xs.indexOf(nearest(cursor));
    const read = (index) => {
      cursor = xs[Math.min(last, Math.max(0, index))];
      drawOver();
    };
    const scale = (factor) => {
      const middle = cursor ?? (now.x0 + now.x1) / 2, half = (now.x1 - now.x0) * factor / 2;
      zoomTo([Math.max(now.all[0], middle - half), Math.min(now.all[1], middle + half)]);
    };
    const step = event.shiftKey ? 10 : 1;
    const actions = {
      ArrowRight: () => read(at === null ? 0 : at + step), ArrowLeft: () => read(at === null ? last : at - step),
      Home: () => read(0), End: () => read(last),
      "+": () => scale(0.5), "=": () => scale(0.5), "-": () => scale(2),
      0: () => zoomTo(null), Escape: () => zoomTo(null),
    };
    if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  });

  const chart = { draw, svg, legend, reset };
  charts.push(chart);
  return chart;
}
