// Numbers and durations as Python writes them (report.py, timing.py), and ticks.

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

const number = (value) => Math.abs(value) >= 1000 ? whole.format(value) : String(Number(value.toPrecision(4)));

function duration(seconds) {
  if (seconds < 59.5) return `${Number(seconds.toPrecision(3))} s`;
  const minutes = Math.round(seconds / 60);
  const [all, ratio, larger, smaller] = Math.round(seconds) < 3600 ? [Math.round(seconds), 60, "min", "s"]
    : minutes < 1440 ? [minutes, 60, "h", "min"] : [Math.round(seconds / 3600), 24, "d", "h"];
  return `${Math.floor(all / ratio)} ${larger}${all % ratio ? ` ${all % ratio} ${smaller}` : ""}`;
}

const AXES = {
  episodes: { name: "Episodes", show: number, tick: (x) => compact.format(x) },
  timesteps: { name: "Timesteps", show: number, tick: (x) => compact.format(x) },
  seconds: { name: "Time", show: duration, tick: duration },
};
const TIME_STEPS = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

// Round numbers between low and high, about `count` of them.
function ticks(low, high, count, isTime = false) {
  const rough = 0.999 * (high - low) / Math.max(1, count) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10, 20].map((factor) => factor * power).find((value) => value >= rough);
  if (isTime && rough > 5) step = TIME_STEPS.find((value) => value >= rough) ?? step;
  const found = [];
  const end = high + 1e-9 * step;
  for (let k = Math.ceil(low / step - 1e-9); k * step <= end; k++) found.push(k * step || 0); // never −0
  return found;
}
