/**
 * Bytes, seconds and shares as people read them: the same rules as `planner/domain/formats/units.py`, so that a page and the command
 * line write a number alike. Everything else holds plain bytes and SI seconds.
 */

const BYTE_STEPS = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
];
const BYTES_ROUNDED_UP = 0.99995; // what one decimal would write as 1,000.0 of the next smaller unit
const ROUNDED_UP = 0.9995; // what three digits would write as the next larger unit
const LARGEST_GAP_SHOWN = 100; // beyond it the bound says nothing
const LARGEST_CHANGE_SHOWN = 100; // beyond it, the factor

/** A way to write numbers, which are handed over with all their digits: they are rounded as they are, half to even. */
const written = (options) => {
  const formatter = new Intl.NumberFormat("en-US", { roundingMode: "halfEven", ...options });
  return { format: (number) => formatter.format(number.toPrecision(50)) };
};
const whole = written({ maximumFractionDigits: 0 });
const oneDecimal = written({ minimumFractionDigits: 1, maximumFractionDigits: 1 });
const twoDecimals = written({ minimumFractionDigits: 2, maximumFractionDigits: 2 });
const sixDigits = written({ maximumSignificantDigits: 6 });
const threeDigits = written({ maximumSignificantDigits: 3 });

/** "80.0 GB": one decimal in the largest decimal unit that keeps it above one, as data sheets have it. */
export function bytes(number) {
  for (const [step, unit] of BYTE_STEPS) {
    if (Math.abs(number) >= step * BYTES_ROUNDED_UP) return `${oneDecimal.format(number / step)} ${unit}`;
  }
  return `${whole.format(number)} B`;
}

/** Bytes between lines of a scale that ends at `end`, so that they read well: 1, 2, 5, 10, 20... of a unit. */
export function byteInterval(end, numLines) {
  const [unit] = BYTE_STEPS.find(([step]) => end / numLines >= step) ?? [1];
  const least = end / numLines / unit;
  const decade = 10 ** Math.floor(Math.log10(least));
  return unit * decade * [1, 2, 5, 10].find((factor) => decade * factor >= least);
}

/** "4.07 ms": three significant digits in s, ms or µs, and below 10 ns in ns or ps. */
export function seconds(number) {
  if (number === 0) return "0 s";
  for (const [step, unit, shownFrom] of [
    [1, "s", 1],
    [1e-3, "ms", 1e-3],
    [1e-6, "µs", 1e-8],
    [1e-9, "ns", 1e-9],
  ]) {
    if (Math.abs(number) >= shownFrom * ROUNDED_UP) return `${threeDigits.format(number / step)} ${unit}`;
  }
  return `${threeDigits.format(number / 1e-12)} ps`;
}

/** "1,024". */
export function count(number) {
  return whole.format(number);
}

/** What seconds of a plan are those of: a request that is served, or a training step. */
export function unitOfWork(objective) {
  return objective === "request_latency" ? "request" : "step";
}

/** "1 rank", "2 ranks". */
export function counted(number, singular, plural = `${singular}s`) {
  return `${count(number)} ${number === 1 ? singular : plural}`;
}

/** Three significant digits of a number without a unit. */
export function digits(number) {
  return threeDigits.format(number);
}

/** "12.34%". */
export function share(fraction) {
  return `${twoDecimals.format(fraction * 100)}%`;
}

/** "12%". */
export function wholeShare(fraction) {
  return `${whole.format(fraction * 100)}%`;
}

/** A lower bound; 0 says nothing. */
export function bound(number) {
  return number > 0 ? seconds(number) : "unknown";
}

/** Seconds on a scale, whose lines may lie close together: as many digits as the line has. */
export function secondsOnScale(number) {
  const [step, unit] =
    number === 0 || Math.abs(number) >= ROUNDED_UP
      ? [1, "s"]
      : Math.abs(number) >= 1e-3 * ROUNDED_UP
        ? [1e-3, "ms"]
        : [1e-6, "µs"];
  return `${sixDigits.format(number / step)} ${unit}`;
}

/** A gap of a plan to its bound. */
export function gap(relative) {
  if (relative === null || relative === undefined) return "unknown";
  return relative < LARGEST_GAP_SHOWN ? share(relative) : `over ${wholeShare(LARGEST_GAP_SHOWN)}`;
}

/** "+1.23%" of a pair {a, b, relative_change}; "x 512" where it became that much larger. */
export function change(pair) {
  const relative = pair.relative_change;
  if (relative === null) return pair.a === pair.b ? "" : "new";
  if (relative >= LARGEST_CHANGE_SHOWN) return `x ${digits(pair.b / pair.a)}`;
  return `${relative < 0 ? "−" : "+"}${share(Math.abs(relative))}`;
}

/** A number of the hardware with its unit, as the API names units. */
export function quantity(value, unit) {
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes_per_second") return `${bytes(value)}/s`;
  if (unit === "seconds") return seconds(value);
  if (unit === "operations_per_second") return `${count(value)}/s`;
  if (unit === "flops_per_second") return `${digits(value / 1e12)} Tflop/s`;
  return `${digits(value)} ${words(unit)}`;
}

const NUMBER_WITH_UNIT = /^(\S+) (bytes_per_second|operations_per_second|flops_per_second|bytes|seconds)$/;

/** The value of an assumption: numbers with units as people write them, all else as it is. */
export function assumed(value) {
  const found = NUMBER_WITH_UNIT.exec(value);
  return found && Number.isFinite(Number(found[1])) ? quantity(Number(found[1]), found[2]) : value;
}

/** A sentence of words that are none yet; of no words none. */
export function sentence(text) {
  return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

/** "forward compute" of "forward_compute". */
export function words(identifier) {
  return identifier.replaceAll("_", " ");
}

/** "sha256:0123456789ab…": enough for people to distinguish two digests. */
export function shortDigest(digest) {
  const shown = "sha256:".length + 12;
  return digest.length > shown ? `${digest.slice(0, shown)}…` : digest;
}

const zone = new Intl.DateTimeFormat("en-US", { timeZoneName: "short" });

/** "2026-11-22 03:52:07 GMT+1", in the reader's time zone, which it names: summer and winter may be two. */
export function moment(iso) {
  const time = new Date(iso);
  const two = (number) => String(number).padStart(2, "0");
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const { value: name } = zone.formatToParts(time).find((part) => part.type === "timeZoneName");
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())} ${name}`;
}

/** "0-3, 5" of ranks. */
export function ranges(numbers) {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < sorted.length;) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === sorted[j] + 1) j += 1;
    parts.push(i === j ? `${sorted[i]}` : `${sorted[i]}-${sorted[j]}`);
    i = j + 1;
  }
  return parts.join(", ");
}
