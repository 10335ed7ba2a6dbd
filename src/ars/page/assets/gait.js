// The film, frame by frame, and below it speed and foot contacts over time; the two move together.

const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

function player(gait, label, onTime) {
  const frames = gait.frames.map((frame) => {
    const image = new Image();
    image.src = `data:image/webp;base64,${frame}`;
    return image;
  });
  const last = frames.length - 1, total = frames.length * gait.frame_seconds;
  const canvas = h("canvas", { role: "img", "aria-label": label }), pen = canvas.getContext("2d");
  const button = h("button", { type: "button", onclick: () => {
    play(!playing);
    wanted = playing;
  } });
  const slider = h("input", { type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Time in the film",
    oninput: () => stopAt(slider.value * gait.frame_seconds) });
  const clock = h("output", {});
  let at = 0, before = null, drawn = -1, playing = false, wanted = !calm;

  function seek(seconds) {
    at = ((seconds % total) + total) % total;
    const index = Math.min(last, Math.floor(at / gait.frame_seconds + 1e-6)), image = frames[index];
    if (image.complete && image.naturalWidth && index !== drawn) {
      if (canvas.width !== image.naturalWidth) {
        canvas.width = image.naturalWidth;
        canvas.height = image.naturalHeight;
      }
      pen.drawImage(image, 0, 0);
      drawn = index;
    }
    slider.value = index;
    clock.textContent = `${(index * gait.frame_seconds).toFixed(1)} of ${gait.seconds.toFixed(1)} s`;
    onTime(index * gait.frame_seconds);
  }

  function step(stamp) {
    if (!playing) return;
    if (before !== null) seek(at + Math.min(0.2, (stamp - before) / 1000));
    before = stamp;
    requestAnimationFrame(step);
  }

  function play(yes) {
    button.textContent = yes ? "Pause" : "Play";
    if (yes && !playing) {
      before = null;
      requestAnimationFrame(step);
    }
    playing = yes;
  }

  function stopAt(seconds) {
    wanted = false;
    play(false);
    seek(seconds);
    frames[slider.value].decode().then(() => playing || seek(seconds), () => {});
  }

  play(false);
  frames[0].decode().then(() => seek(at), () => {});
  const inSight = ([entry]) => play(entry.isIntersecting && wanted); // play only visible films
  new IntersectionObserver(inSight).observe(canvas);
  return { element: h("div", { class: "film" }, canvas, h("div", { class: "bar" }, button, slider, clock)), stopAt };
}

function diagram(gait, stopAt) {
  const words = gait.feet.map((foot) => `${foot.name} on the ground ${foot.share} of the time`);
  const told = gait.commanded ? [`${gait.commanded} m/s commanded`] : [];
  const svg = s("svg", { class: "feet", role: "img", "aria-label": ["Speed over time", ...told, ...words].join(", ") });
  const short = (name) => name.length > 18 ? `${name.slice(0, 17)}…` : name; // robots of one's own have any names
  const left = Math.max(92, ...gait.feet.map((foot) => 8 + 7 * short(foot.name).length));
  const row = 34, tall = gait.speeds.length ? 84 : 0, height = tall + row * gait.feet.length + 24;
  const small = { opacity: 0.8, "font-size": "10.5" };
  let line = null, px = null;

  function feet(right) {
    return gait.feet.map((foot, i) => {
      const y = tall + i * row, bar = { y: y + 6, height: row - 12 };
      const stances = foot.down.map(([from, to]) =>
        s("rect", { class: "down", x: px(from), width: Math.max(0.5, px(to) - px(from)), ...bar },
          s("title", {}, `${foot.name}: ${from.toFixed(2)} to ${to.toFixed(2)} s`)));
      return [
        s("text", { x: 0, y: y + 15 }, short(foot.name)), s("text", { x: 0, y: y + 28, ...small }, `${foot.share} down`),
        s("rect", { class: "air", x: left, width: right - left, rx: 3, ...bar }), stances,
      ];
    }).flat(2);
  }

  function speed(right) {
    if (!tall) return [];
    const told = gait.commanded ?? 0, low = Math.min(0, told, ...gait.speeds);
    const high = Math.max(0.1, told, ...gait.speeds);
    const py = (v) => 8 + (tall - 22) * (1 - (v - low) / (high - low));
    const xs = gait.speeds.map((_, i) => gait.seconds * i / Math.max(1, gait.speeds.length - 1));
    const style = { stroke: "var(--c0)", strokeWidth: 2, fill: "none", strokeLinejoin: "round" };
    return [
      s("text", { x: 0, y: 22 }, "speed"), s("text", { x: 0, y: 36, ...small }, "m/s"),
      ticks(low, high, 3).map((v) => [
        s("line", { class: "grid", x1: left, x2: right, y1: py(v), y2: py(v) }),
        s("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end", ...small }, String(Number(v.toPrecision(3)))),
      ]),
      s("path", { class: "speed", d: pathOf({ xs, ys: gait.speeds }, px, py), style }),
      told && s("line", { class: "commanded", x1: left, x2: right, y1: py(told), y2: py(told) }),
      told && s("text", { class: "over", x: right, y: py(told) + (py(told) < 20 ? 13 : -5), "text-anchor": "end", ...small },
        "commanded"),
    ].flat(2).filter(Boolean);
  }

  function draw() {
    const width = Math.max(240, svg.getBoundingClientRect().width), right = width - 10;
    px = (t) => left + (right - left) * Math.min(1, t / gait.seconds);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    const times = ticks(0, gait.seconds, (right - left) / 70).map((t) =>
      s("text", { x: px(t), y: height - 4, "text-anchor": "middle" }, `${Number(t.toFixed(2))} s`));
    line = s("line", { class: "limit", x1: left, x2: left, y1: 0, y2: height - 20 });
    svg.replaceChildren(...feet(right), ...speed(right), ...times, line);
  }

  const go = (event) => {
    const from = px(0), share = (event.clientX - svg.getBoundingClientRect().left - from) / (px(gait.seconds) - from);
    stopAt(gait.seconds * Math.min(0.9999, Math.max(0, share)));
  };
  svg.addEventListener("pointerdown", go);
  svg.addEventListener("pointermove", (event) => { if (event.buttons) go(event); });

  function mark(seconds) {
    line?.setAttribute("x1", px(seconds));
    line?.setAttribute("x2", px(seconds));
  }
  return { svg, draw, mark };
}

// The film and, if there is something to draw, its diagram; functions that draw are added to draws.
function filmAndDiagram(gait, label, draws) {
  const strip = gait.feet.length || gait.speeds.length ? diagram(gait, (seconds) => film.stopAt(seconds)) : null;
  const film = player(gait, label, (seconds) => strip?.mark(seconds));
  if (strip) draws.push(strip.draw);
  return [film.element, strip?.svg];
}
