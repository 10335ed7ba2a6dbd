// The policy as a picture: one row per action, one column per observation, with the model's names.

function heatMap(policy) {
  const columns = policy.blocks.flatMap((block, b) => block.columns.map((name) => ({ name, block: b })))
    .map((column, j) => ({ ...column, j }));
  const ignored = new Set(policy.ignored), p = policy.rows.length;
  const title = `Heat map of the policy, ${p} actions by ${columns.length} observations. Arrow keys read the cells.`;
  const svg = s("svg", { class: "cells", tabindex: "0", role: "group", "aria-label": title });
  const box = h("div", { class: "scroll" }, svg);
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const scale = h("span", { class: "scale" });
  let block = null; // which part of the observation is shown; null: all of it
  let matrix = state.matrix;
  let place = null; // the selected cell, {i, c}
  let here = null; // its frame
  let shape = null; // how it is drawn

  function draw() {
    const values = policy[matrix], shown = columns.filter((column) => block === null || column.block === block);
    const most = policy.scales[matrix][block === null ? 0 : block + 1]; // the value of full colour
    const width = Math.max(260, box.getBoundingClientRect().width);
    const longest = (names) => Math.max(...names.map((name) => name.length));
    const labelled = block !== null || columns.length <= 60 || policy.blocks.length === 1;
    const left = Math.min(width < 560 ? 96 : 140, 8 + 6.6 * longest(policy.rows));
    const cell = Math.max(labelled ? 15 : 1.6, Math.min(64, (width - left - 24) / shown.length));
    const tall = p > 10 ? 20 : 26;
    const top = 20 + (labelled ? Math.min(130, 14 + 5.4 * longest(shown.map((column) => column.name))) : 8);
    const total = left + cell * shown.length + (labelled ? 40 : 4), height = top + tall * p + 4;
    shape = { shown, values, left, top, cell, tall };
    svg.style.width = `${total}px`;
    svg.setAttribute("viewBox", `0 0 ${total} ${height}`);
    svg.setAttribute("height", height);
    here = s("rect", { class: "here", width: Math.max(3, cell), height: tall, visibility: "hidden" });
    svg.replaceChildren(...cells(most), ...(labelled ? columnLabels() : []), ...blockLabels(labelled ? top : 4), here);
    scale.replaceChildren(`−${number(most)}`, h("i", {}), `+${number(most)}`);
    if (place) read(place.i, Math.min(place.c, shown.length - 1));
    else readout.textContent = "Point at a cell to read it: which observation drives which motor, and how strongly.";
  }

  function cells(most) {
    const { shown, values, left, top, cell, tall } = shape;
    const size = { width: cell > 4 ? cell - 1 : cell, height: tall - 1 }, label = { x: left - 6, "text-anchor": "end" };
    return values.flatMap((row, i) => [
      s("text", { class: "row-label", ...label, y: top + tall * (i + 0.5) + 4 }, policy.rows[i]),
      ...shown.map(({ j }, c) => {
        const part = 100 * Math.min(1, Math.abs(row[j]) / most) ** 0.8; // small values stay visible
        const fill = `color-mix(in srgb, var(${row[j] < 0 ? "--minus" : "--plus"}) ${part.toFixed(0)}%, var(--zero))`;
        return s("rect", { class: "cell", x: left + cell * c, y: top + tall * i, ...size, style: { fill } });
      }),
    ]);
  }

  function columnLabels() {
    const { shown, left, top, cell } = shape, y = top - 6;
    return shown.map(({ name, j }, c) => {
      const x = left + cell * (c + 0.5), opacity = ignored.has(j) ? 0.5 : 1;
      return s("text", { class: "column-label", x, y, opacity, transform: `rotate(-52 ${x} ${y})` }, name);
    });
  }

  function blockLabels(lineTop) {
    const { shown, left, top, cell, tall } = shape, content = [];
    const label = { class: "block-label", y: 13, "text-anchor": "middle", "font-weight": 600 };
    let from = 0;
    shown.forEach((column, c) => {
      if (shown[c + 1]?.block === column.block) return;
      const name = policy.blocks[column.block].title, end = left + cell * (c + 1);
      if (cell * (c + 1 - from) > 6.2 * name.length) // otherwise there is no room for it
        content.push(s("text", { ...label, x: left + cell * (from + c + 1) / 2 }, name));
      if (c + 1 < shown.length)
        content.push(s("line", { class: "block", x1: end - 0.5, x2: end - 0.5, y1: lineTop, y2: top + tall * p }));
      from = c + 1;
    });
    return content;
  }

  function read(i, c) {
    const { shown, values, left, top, cell, tall } = shape, column = shown[c], value = values[i][column.j];
    place = { i, c };
    here.setAttribute("x", left + cell * c);
    here.setAttribute("y", top + tall * i);
    here.setAttribute("visibility", "visible");
    const { title: part } = policy.blocks[column.block];
    const names = [h("b", {}, policy.rows[i]), " ← ", h("b", {}, column.name), ` (${part})`];
    const unit = matrix === "W" ? " for each unit" : " for each standard deviation";
    const extra = ignored.has(column.j) && h("span", {}, "ignored: it never varied");
    const parts = [h("span", {}, names), h("span", {}, h("b", {}, `${value > 0 ? "+" : ""}${value}`), unit), extra];
    readout.replaceChildren(...parts.filter(Boolean));
  }

  svg.addEventListener("pointermove", (event) => {
    const edge = svg.getBoundingClientRect(), { shown, left, top, cell, tall } = shape;
    const c = Math.floor((event.clientX - edge.left - left) / cell);
    const i = Math.floor((event.clientY - edge.top - top) / tall);
    if (i >= 0 && i < p && c >= 0 && c < shown.length) read(i, c);
  });
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const [di, dc] = moves[event.key] ?? [0, 0];
    if (!di && !dc) return;
    event.preventDefault();
    const most = shape.shown.length - 1;
    if (place) read(Math.min(p - 1, Math.max(0, place.i + di)), Math.min(most, Math.max(0, place.c + dc)));
    else read(0, 0);
    const x = shape.left + shape.cell * place.c;
    const outside = x < box.scrollLeft + shape.left || x > box.scrollLeft + box.clientWidth - 40;
    if (outside) box.scrollLeft = x - box.clientWidth / 2;
  });

  const parts = [[null, "all"], ...policy.blocks.map((one, b) => [b, one.title])];
  const blocks = policy.blocks.length > 1 && choice("Part of the observation", parts, block, (value) => {
    block = value;
    place = null;
    draw();
  });
  const scales = [["W", "per unit"], ["M", "per standard deviation"]];
  const matrices = choice("Scaled how", scales, matrix, (value) => {
    matrix = state.matrix = value;
    draw();
  });
  return { controls: [blocks, matrices, scale], element: h("div", {}, box, readout), draw };
}
