// The report: sections about the runs of one task, and about the selected run.

const task = () => data.tasks[state.task];

// The lines of one chart: for each group of runs that differ only in their seed its band, computed in Python, or the
// runs themselves if not all of them are drawn.
function linesOf({ table, column, bands }) {
  const { groups, runs } = task();
  const single = runs.filter((index) => state.chosen.has(index)).length === 1;
  return groups.flatMap((group, g) => {
    const there = group.filter((index) => data.runs[index][table].columns[column]?.length);
    const drawn = there.filter((index) => state.chosen.has(index)), alone = drawn.length === 1;
    const lines = drawn.map((index, k) => {
      const { name, race, fresh_starts, [table]: { [state.axis]: xs, columns, ...spread } } = data.runs[index];
      const { low, high } = column === "eval_mean" ? spread : {};
      const label = alone && low ? `${name}: mean of an evaluation ± its standard deviation` : name;
      const line = { label, xs, ys: columns[column], colour: colour(alone || groups.length > 1 ? g : k + 1) };
      return alone ? { ...line, low, high, shaded: single ? fresh_starts[state.axis] : [] } : { ...line, thin: race !== "won", faded: race === "stopped" };
    });
    const band = !alone && drawn.length === there.length && bands[g]?.[state.axis];
    if (!band || !band.xs.length) return lines;
    return [...(state.singles ? lines : []), { ...band, label: bands[g].label, colour: colour(g) }];
  });
}

// -- sections -------------------------------------------------------------------------------------------------------

const glance = (run) => section("At a glance", [], h("div", { class: "tiles" }, run.facts.map(([label, value]) =>
  h("div", { class: "tile" }, h("b", {}, value), h("span", {}, label)))), run.notes.map((text) => note(text)));

function runTable(runs) {
  const choose = (index, yes) => yes ? state.chosen.add(index) : state.chosen.delete(index);
  const rows = runs.map((index) => {
    const { name, facts } = data.runs[index], looked = index === state.look;
    const box = h("input", { type: "checkbox", checked: state.chosen.has(index), "aria-label": `Draw ${name}`,
      onchange: () => {
        choose(index, box.checked);
        drawCharts();
      } });
    const press = () => lookAt(index);
    const button = h("button", { type: "button", "aria-pressed": String(looked), onclick: press }, name);
    return h("tr", { class: looked ? "chosen" : null }, h("td", {}, box), h("td", { class: "name" }, button),
      facts.map(([, value]) => h("td", { class: "number" }, value)));
  });
  const draw = (yes) => () => {
    runs.forEach((index) => choose(index, yes));
    renderReport();
  };
  const all = h("button", { type: "button", onclick: draw(true) }, "Draw all");
  const none = h("button", { type: "button", onclick: draw(false) }, "Draw none");
  const heads = ["draw", "run", ...data.runs[runs[0]].facts.map(([label]) => label)];
  const top = heads.map((name, i) => h("th", { scope: "col", class: i > 1 ? "number" : null }, name));
  const table = h("table", { class: "runs" }, h("thead", {}, h("tr", {}, top)), h("tbody", {}, rows));
  return section("The runs", h("span", { class: "choice" }, all, none),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table of the runs" }, table));
}

// A row per seed, a column per round; the rows of seeds that were stopped are faded, as are their curves.
function raceSection({ name, heads, rows }) {
  const top = heads.map((head) => h("th", { scope: "col", class: "number" }, head));
  const body = rows.map((cells) => h("tr", { class: cells.at(-1) },
    cells.map((cell) => h("td", { class: "number" }, cell))));
  const table = h("table", { class: "race" }, h("thead", {}, h("tr", {}, top)), h("tbody", {}, body));
  return section(`The race ${name}`, [],
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Table of the race ${name}` }, table),
    note("Mean return in training at the end of each round, by which seeds are ranked; curves of seeds that were ",
      "stopped are faded."));
}

function curves() {
  const { charts: [learning, ...others], groups, runs } = task();
  const make = (chart, height) =>
    makeChart({ ...chart, height, lines: () => linesOf(chart), singlesInLegend: chart === learning });
  const large = make(learning, 300);
  const axes = Object.entries(AXES).map(([key, axis]) => [key, axis.name]);
  const axis = choice("Count by", axes, state.axis, (value) => {
    state.axis = value;
    state.zoom = null;
    drawCharts();
  });
  const kinds = [[false, "Median"], [true, "Single runs too"]];
  const singles = groups.length < runs.length && learning.bands.some(Boolean) && choice("What to draw", kinds, state.singles, (value) => {
    state.singles = value;
    drawCharts();
  });
  const small = others.map((chart) => {
    const { svg, legend } = make(chart, 210);
    return section(chart.title, [], svg, legend);
  });
  return [
    section(learning.title, [singles, axis, large.reset], large.svg, large.legend,
      note("The mean reward of the evaluations, by the task's own reward. Drag over the curve to zoom."),
      runs.some((index) => data.runs[index].fresh_starts.episodes.length) && note(
        "Shaded where a single run is drawn: a fresh start trains, and the policy that waits is evaluated and saved.")),
    h("div", { class: "charts" }, small),
  ];
}

function gaitSection(run, draws) {
  const { gait } = run;
  if (gait?.frames) {
    const [film, strip] = filmAndDiagram(gait, `Film of ${task().name}`, draws);
    const what = `The first ${gait.seconds.toFixed(1)} s of the first episode of ars evaluate with seed 0`;
    const hint = gait.feet.length > 0 && note("Coloured: the foot is on the ground. Click to go to that time.");
    return section("The gait", [],
      h("div", { class: strip ? "gait two" : "gait" }, film, strip && h("div", {}, hint, strip)),
      note(`${what}: ${gait.summary}.`));
  }
  const { best } = task(), filmed = data.runs[best].gait?.frames;
  const why = gait?.why_not ? `No film: ${gait.why_not}`
    : filmed ? "Only the best run of a task is filmed." : "No film was requested, or there is no policy yet.";
  const press = () => lookAt(best);
  const go = filmed && h("button", { type: "button", onclick: press }, "Show the run that is filmed");
  return section("The gait", go, h("p", { class: "note why-not" }, why));
}

function policySection(run, draws) {
  const map = heatMap(run.policy);
  draws.push(map.draw);
  return section("The policy", map.controls, map.element, note(
    `π(x) = M diag(σ)⁻¹ (x − μ), from ${run.policy.file}. A row is an action, a column an observation; `,
    "per unit is M diag(σ)⁻¹, per standard deviation is M itself."));
}

function commands(run, runs) {
  const rows = run.commands.map(([what, command]) =>
    h("tr", {}, h("td", { class: "faint" }, what), h("td", {}, h("code", {}, command))));
  const title = runs.length > 1 ? `Commands of ${run.name}` : "Commands";
  return section(title, [], h("div", { class: "scroll" }, h("table", { class: "commands" }, h("tbody", {}, rows))));
}

function settings(run, runs) {
  const rows = run.settings.map(([where, name, value, differs]) => h("tr", { class: differs ? "differs" : null },
    h("td", { class: "faint" }, where), h("td", { class: "name" }, name), h("td", { class: "name" }, value)));
  return h("section", {}, h("details", {}, h("summary", {}, `Every setting (${rows.length})`),
    runs.length > 1 && note("Shaded: not the same in all runs of this task."), h("table", {}, h("tbody", {}, rows))));
}

// -- the whole page -------------------------------------------------------------------------------------------------

function lookAt(index) {
  state.look = index;
  renderReport();
}

function renderReport() {
  const focused = document.activeElement?.textContent, top = scrollY;
  const { name, headline, runs, best } = task();
  if (!runs.includes(state.look)) state.look = best;
  const run = data.runs[state.look];
  const choose = (index) => {
    state.task = index;
    state.zoom = null;
    renderReport();
  };
  const tasks = data.tasks.map((one, index) => [index, one.name]);
  charts = [];
  const draws = [drawCharts];
  document.title = `${name} · ARS report`;
  show([
    h("header", {}, h("h1", {}, name), h("p", { class: "faint" }, headline), themeButton),
    tasks.length > 1 && h("p", { class: "tasks" }, choice("Task", tasks, state.task, choose)),
    ...task().races.map(raceSection),
    runs.length > 1 && runTable(runs),
    glance(run),
    ...curves(),
    gaitSection(run, draws),
    run.policy && policySection(run, draws),
    run.robustness && robustnessSection(run.robustness, draws),
    commands(run, runs),
    settings(run, runs),
    footer(),
  ], draws);
  scrollTo(0, top);
  const pressed = [...page.querySelectorAll("button")].find((button) => button.textContent === focused);
  pressed?.focus({ preventScroll: true }); // the buttons were replaced
}
