// What a policy stands: maps of two conditions each; a cell is one episode.

function robustnessSection(result, draws) {
  const state = { what: "survived" };
  const pictures = result.maps.map((map) => conditionMap(map, state));
  const redraw = () => pictures.forEach((picture) => picture.draw());
  draws.push(redraw);
  const kinds = [["survived", "Survival"], ["speed", "Speed"]];
  const kind = choice("What to show", kinds, state.what, (value) => {
    state.what = value;
    redraw();
  });
  return section("Robustness", kind,
    note(`It survives ${result.survived} of ${result.conditions} conditions. Each cell is one episode, from the same `,
      "start. Survival: the part of the episode before a stop; speed: along x, in m/s, until then."),
    h("div", { class: "charts" }, pictures.map((picture) => picture.element)));
}

function conditionMap(map, state) {
  const rows = map.ys.length, columns = map.xs.length;
  const label = `${map.title}: ${map.x} across, ${map.y} down. Arrow keys read the cells.`;
  const svg = s("svg", { class: "cells", tabindex: "0", role: "group", "aria-label": label });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const box = h("div", {}, svg);
  let shape = null, place = null, here = null;

  function draw() {
    const width = Math.max(240, box.getBoundingClientRect().width), left = 52, top = 8, tall = 17;
    const cell = (width - left - 8) / columns, values = map[state.what].flat();
    const most = Math.max(1e-9, ...values.map(Math.abs));
    shape = { left, top, cell, tall };
    svg.setAttribute("viewBox", `0 0 ${width} ${top + tall * rows + 40}`);
    svg.setAttribute("height", top + tall * rows + 40);
    const fill = (value) => state.what === "survived"
      ? `color-mix(in srgb, var(--c2) ${(value === 1 ? 100 : 50 * value).toFixed(0)}%, var(--zero))`
      : `color-mix(in srgb, var(${value < 0 ? "--minus" : "--plus"}) ${(100 * Math.abs(value) / most).toFixed(0)}%, var(--zero))`;
    const cells = map[state.what].flatMap((row, i) => row.map((value, c) => s("rect", { x: left + cell * c,
      y: top + tall * i, width: cell - 1, height: tall - 1, style: { fill: fill(value) } })));
    const every = Math.ceil(columns / Math.max(2, Math.floor((width - left) / 34)));
    const across = map.xs.map((value, c) => c % every === 0 && s("text", { x: left + cell * (c + 0.5),
      y: top + tall * rows + 14, "text-anchor": "middle" }, number(value)));
    const down = map.ys.map((value, i) => s("text", { x: left - 5, y: top + tall * (i + 0.5) + 4,
      "text-anchor": "end" }, number(value)));
    const title = s("text", { x: left + cell * columns / 2, y: top + tall * rows + 32, "text-anchor": "middle" }, map.x);
    here = s("rect", { class: "here", width: cell, height: tall, visibility: "hidden" });
    svg.replaceChildren(...cells, ...across.filter(Boolean), ...down, title, here);
    if (place) read(place.i, place.c);
    else readout.textContent = `down: ${map.y}`;
  }

  function read(i, c) {
    place = { i, c };
    here.setAttribute("x", shape.left + shape.cell * c);
    here.setAttribute("y", shape.top + shape.tall * i);
    here.setAttribute("visibility", "visible");
    const share = map.survived[i][c];
    const fate = share === 1 ? "survives" : `falls after ${(100 * share).toFixed(0)}% of the episode`;
    readout.replaceChildren(h("span", {}, `${map.x} `, h("b", {}, number(map.xs[c]))),
      h("span", {}, `${map.y} `, h("b", {}, number(map.ys[i]))), h("span", {}, fate),
      h("span", {}, h("b", {}, number(map.speed[i][c])), " m/s"));
  }

  svg.addEventListener("pointermove", (event) => {
    const edge = svg.getBoundingClientRect();
    const c = Math.floor((event.clientX - edge.left - shape.left) / shape.cell);
    const i = Math.floor((event.clientY - edge.top - shape.top) / shape.tall);
    if (i >= 0 && i < rows && c >= 0 && c < columns) read(i, c);
  });
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const [di, dc] = moves[event.key] ?? [0, 0];
    if (!di && !dc) return;
    event.preventDefault();
    if (place) read(Math.min(rows - 1, Math.max(0, place.i + di)), Math.min(columns - 1, Math.max(0, place.c + dc)));
    else read(0, 0);
  });
  return { draw, element: section(map.title, [], box, readout) };
}

function renderRobustness() {
  const draws = [];
  document.title = `${data.name} · ARS robustness`;
  show([h("header", {}, h("h1", {}, data.name), themeButton), robustnessSection(data.robustness, draws), footer()], draws);
}
