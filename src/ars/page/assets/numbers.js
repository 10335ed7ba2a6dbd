// Numbers as people read them, ticks, and the statistics over runs.

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e4) return grouped.format(value);
  if (Number.isInteger(value)) return String(value);
  return size >= 100 ? value.toFixed(1) : String(Number(value.toPrecision(3)));
}

function time(seconds) {
  const two = (value) => String(value).padStart(2, "0");
  if (seconds < 59.5) return `${Number(seconds.toPrecision(3))} s`;
  const whole = Math.round(seconds), minutes = Math.round(seconds / 60);
  if (whole < 3600) return whole % 60 ? `${Math.floor(whole / 60)}:${two(whole % 60)} min` : `${whole / 60} min`;
  return minutes % 60 ? `${Math.floor(minutes / 60)}:${two(minutes % 60)} h` : `${minutes / 60} h`;
}

const AXES = {
  episodes: { name: "Episodes", show: number, tick: (x) => compact.format(x) },
  timesteps: { name: "Timesteps", show: number, tick: (x) => compact.format(x) },
  seconds: { name: "Time", show: time, tick: time },
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

function quantile(sorted, q) {
  const at = (sorted.length - 1) * q, below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

// The value of a curve {xs, ys} at x, on the straight line between its points.
function valueAt({ xs, ys }, x) {
  if (x <= xs[0]) return ys[0];
  let low = 0, high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle;
  }
  if (xs[high] === xs[low]) return ys[high];
  return ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / (xs[high] - xs[low]);
}

// Median and percentiles over curves, between where half of them have begun and where half still go on, and always of
// two at least; a curve counts from its first point to its last.
function band(curves) {
  const sorted = (values) => values.sort((a, b) => a - b), needed = Math.max(2, Math.ceil(curves.length / 2));
  const start = sorted(curves.map((curve) => curve.xs[0]))[needed - 1];
  const end = sorted(curves.map((curve) => curve.xs.at(-1)))[curves.length - needed];
  const found = { xs: [], ys: [], low: [], high: [] }, last = 199;
  for (let i = end > start ? 0 : last; i <= last; i++) {
    const x = i === last ? end : start + (end - start) * i / last;
    const there = curves.filter((curve) => curve.xs[0] <= x && curve.xs.at(-1) >= x);
    if (there.length < 2) continue;
    const values = sorted(there.map((curve) => valueAt(curve, x)));
    found.xs.push(x);
    found.ys.push(quantile(values, 0.5));
    found.low.push(quantile(values, 0.1));
    found.high.push(quantile(values, 0.9));
  }
  return found;
}
