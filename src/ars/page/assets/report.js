// The report: sections about the runs of one task, and about the one run that is looked at.

const runsOfTask = () => data.runs.map((run, index) => ({ run, index })).filter(({ run }) => run.task === state.task);

// The lines of one quantity: for each group of runs that differ only in their seed, a median with its band.
function linesOf(quantity, value, withDeviation = false) {
  const there = runsOfTask(), groups = [...new Set(there.map(({ run }) => run.group))];
  return groups.flatMap((group, g) => {
    const members = there.filter(({ run, index }) =>
      run.group === group && state.chosen.has(index) && run[quantity][value].length);
    const curves = members.map(({ run }, k) => ({
      label: run.name, xs: run[quantity][state.axis], ys: run[quantity][value], thin: true,
      colour: groups.length > 1 ? colour(g) : colour(k + 1),
    }));
    if (members.length === 0) return [];
    if (members.length === 1) {
      const one = { ...curves[0], thin: false, colour: colour(g) };
      return [withDeviation ? deviating(one, members[0].run[quantity].std) : one];
    }
    const median = band(curves);
    if (!median.xs.length) return curves; // no two of them at the same time
    const label = `${differing(group, groups)}median and 10th to 90th percentile of ${members.length} runs`;
    return [...(state.singles ? curves : []), { ...median, colour: colour(g), label }];
  });
}

function deviating(line, std) {
  if (std.some((value) => value === null)) return line;
  const label = `${line.label}: mean of an evaluation ± its standard deviation`;
  return { ...line, label, low: line.ys.map((y, i) => y - std[i]), high: line.ys.map((y, i) => y + std[i]) };
}

// What tells a group from the others: "alpha 0.02: ".
function differing(group, groups) {
  const parts = group.split(", ");
  const own = parts.filter((part, i) => groups.some((other) => other.split(", ")[i] !== part));
  return own.length ? `${own.join(", ")}: ` : "";
}

// -- sections -------------------------------------------------------------------------------------------------------

function glance(run) {
  const tile = (label, value) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, label));
  const { best, reached, totals } = run, deviation = best?.std === null ? "" : `, ± ${number(best?.std)}`;
  const which = best ? `best evaluation, at iteration ${best.iteration}${deviation}` : "no evaluation yet";
  return section("At a glance", [], h("div", { class: "tiles" },
    tile(which, number(best?.mean)),
    run.threshold !== null
      && tile(`episodes to the threshold ${number(run.threshold)}`, reached ? number(reached.episodes) : "not reached"),
    reached && tile("time to the threshold", time(reached.seconds)),
    tile("episodes", number(totals.episodes)), tile("timesteps", compact.format(totals.timesteps)),
    tile("time, evaluations included", time(totals.seconds)), tile("training steps per second", rate(run))));
}

const rate = (run) => run.speed === null ? "–" : compact.format(run.speed);

function runTable(runs) {
  const heads = ["draw", "run", "seed", "best evaluation", "episodes to threshold", "episodes", "timesteps", "time",
    "steps/s"];
  const rows = runs.map(({ run, index }) => {
    const box = h("input", { type: "checkbox", checked: state.chosen.has(index), "aria-label": `Draw ${run.name}`,
      onchange: () => {
        if (box.checked) state.chosen.add(index);
        else state.chosen.delete(index);
        drawCharts();
      } });
    const looked = index === state.look;
    const press = () => lookAt(index);
    const name = h("button", { type: "button", "aria-pressed": String(looked), onclick: press }, run.name);
    const deviation = run.best?.std === null ? "" : ` ± ${number(run.best?.std)}`;
    const best = run.best ? `${number(run.best.mean)}${deviation}` : "–";
    const reached = run.threshold === null ? "–" : run.reached ? number(run.reached.episodes) : "not reached";
    const numbers = [String(run.seed), best, reached, number(run.totals.episodes), compact.format(run.totals.timesteps),
      time(run.totals.seconds), rate(run)];
    return h("tr", { class: looked ? "chosen" : null }, h("td", {}, box), h("td", { class: "name" }, name),
      numbers.map((value) => h("td", { class: "number" }, value)));
  });
  const draw = (yes) => () => {
    for (const { index } of runs) {
      if (yes) state.chosen.add(index);
      else state.chosen.delete(index);
    }
    renderReport();
  };
  const all = h("button", { type: "button", onclick: draw(true) }, "Draw all");
  const none = h("button", { type: "button", onclick: draw(false) }, "Draw none");
  const top = heads.map((name, i) => h("th", { scope: "col", class: i > 1 ? "number" : null }, name));
  const table = h("table", { class: "runs" }, h("thead", {}, h("tr", {}, top)), h("tbody", {}, rows));
  return section("The runs", h("span", { class: "choice" }, all, none),
    h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table of the runs" }, table));
}

function curves(run, runs) {
  const learning = makeChart({
    label: "Learning curve: mean reward of the evaluations", height: 300, singlesInLegend: true,
    build: () => ({ series: linesOf("evaluations", "mean", true), limit: run.threshold }),
  });
  const sigma = makeChart({ label: "sigma_R", height: 210,
    build: () => ({ series: linesOf("sigma_R", "value"), limit: null }) });
  const speed = makeChart({ label: "Training timesteps per second", height: 210, unit: " steps/s",
    build: () => ({ series: linesOf("throughput", "value"), limit: null }) });
  const axes = Object.entries(AXES).map(([key, axis]) => [key, axis.name]);
  const axis = choice("Count by", axes, state.axis, (value) => {
    state.axis = value;
    state.zoom = null;
    drawCharts();
  });
  const grouped = new Set(runs.map((one) => one.run.group)).size < runs.length;
  const kinds = [[false, "Median"], [true, "Single runs too"]];
  const singles = grouped && choice("What to draw", kinds, state.singles, (value) => {
    state.singles = value;
    drawCharts();
  });
  return [
    section("Learning curve", [singles, axis, learning.reset], learning.svg, learning.legend,
      note("The mean reward of the evaluations, with the task's own reward. Drag over the curve to zoom.")),
    h("div", { class: "pair" },
      section("σ_R, the deviation of the rewards used in a step", [], sigma.svg, sigma.legend),
      section("Training steps per second", [], speed.svg, speed.legend)),
  ];
}

function gaitSection(run, runs, draws) {
  const { gait } = run;
  if (gait?.frames) {
    const [film, strip] = filmAndDiagram(gait, `Film of ${run.task}`, draws);
    const speed = gait.speed === null ? "" : `, ${gait.speed.toFixed(2)} m/s in the second half`;
    const what = `The first ${gait.seconds.toFixed(1)} s of the first episode of ars evaluate with seed ${gait.seed}`;
    const hint = gait.feet.length > 0 && note("Coloured: the foot is on the ground. Click to go to a moment.");
    return section("The gait", [],
      h("div", { class: strip ? "gait two" : "gait" }, film, strip && h("div", {}, hint, strip)),
      note(`${what}: ${gait.steps} steps, reward ${number(gait.reward)}${speed}.`));
  }
  const filmed = runs.find((one) => one.run.gait?.frames);
  const why = gait?.why_not ? `No film: ${gait.why_not}`
    : filmed ? "Only the best run of a task is filmed." : "No film was asked for, or there is no policy yet.";
  const press = () => lookAt(filmed.index);
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
  const others = runs.filter((one) => one.run !== run)
    .map((one) => new Set(one.run.settings.map((row) => row.join("\n"))));
  const rows = run.settings.map((row) => {
    const differs = others.some((other) => !other.has(row.join("\n")));
    const [where, name, value] = row;
    return h("tr", { class: differs ? "differs" : null },
      h("td", { class: "faint" }, where), h("td", { class: "name" }, name), h("td", { class: "name" }, value));
  });
  return h("section", {}, h("details", {}, h("summary", {}, `Every setting (${rows.length})`),
    others.length > 0 && note("Shaded: not the same in all runs of this task."), h("table", {}, h("tbody", {}, rows))));
}

// -- the whole page -------------------------------------------------------------------------------------------------

function lookAt(index) {
  state.look = index;
  renderReport();
}

// The run that is filmed, or else the best.
function mostInteresting(runs) {
  const score = ({ run }) => (run.gait?.frames ? 1e15 : 0) + (run.best?.mean ?? -1e14);
  return runs.reduce((best, one) => score(one) > score(best) ? one : best).index;
}

function renderReport() {
  const focused = document.activeElement?.textContent, top = scrollY;
  const tasks = [...new Set(data.runs.map((run) => run.task))];
  if (!tasks.includes(state.task)) state.task = tasks[0];
  const runs = runsOfTask();
  if (!runs.some(({ index }) => index === state.look)) state.look = mostInteresting(runs);
  const run = data.runs[state.look], several = runs.length > 1;
  const choose = (task) => {
    state.task = task;
    state.zoom = null;
    renderReport();
  };
  charts = [];
  const draws = [drawCharts];
  document.title = `${run.task} · ARS report`;
  show([
    h("header", {}, h("h1", {}, run.task),
      h("p", { class: "faint" }, several ? `${runs.length} runs` : `${run.variant}, seed ${run.seed}`), themeButton),
    tasks.length > 1 && h("p", { class: "tasks" }, choice("Task", tasks.map((task) => [task, task]), run.task, choose)),
    several && runTable(runs),
    glance(run),
    ...curves(run, runs),
    gaitSection(run, runs, draws),
    run.policy && policySection(run, draws),
    commands(run, runs),
    settings(run, runs),
    footer(),
  ], draws);
  scrollTo(0, top);
  const pressed = [...page.querySelectorAll("button")].find((button) => button.textContent === focused);
  pressed?.focus({ preventScroll: true }); // it has been made anew
}
