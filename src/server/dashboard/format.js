// Numbers and times as people read them.

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
const clockSeconds = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
});
const day = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });

/** What stands for a number that is not known. */
export const NONE = "–";

export const count = (n) => (n === null || n === undefined ? NONE : number.format(n));

/** In full up to 99,999, then 1.2M. */
export const short = (n) => (n === null || n === undefined ? NONE : n < 100_000 ? number.format(n) : compact.format(n));

export const percent = (share, digits = 1) =>
  share === null || share === undefined || Number.isNaN(share) ? NONE : `${(share * 100).toFixed(digits)} %`;

export function dollars(value) {
  if (value === 0) return "$0";
  if (value < 0.0001) return "< $0.0001";
  if (value < 1) return `$${value.toFixed(4)}`;
  return value < 10_000 ? `$${value.toFixed(2)}` : `$${compact.format(value)}`;
}

export function millis(value) {
  if (value === null || value === undefined) return NONE;
  if (value < 10) return `${value.toFixed(2)} ms`;
  if (value < 100) return `${value.toFixed(1)} ms`;
  if (value < 10_000) return `${number.format(value)} ms`;
  return `${(value / 1000).toFixed(1)} s`;
}

/** The two largest units: `2 d 3 h`, `4 min 10 s`. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds > 0 && seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds > 0 && seconds < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  let rest = Math.round(seconds);
  const units = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];
  const words = [];
  for (const [unit, size] of units) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) words.push(`${n} ${unit}`);
    else if (words.length) break;
    if (words.length === 2) break;
  }
  return words.join(" ") || "0 s";
}

export function bytes(n) {
  if (n === null || n === undefined) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = n;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** A time today as 03:10, another as 30 Nov 03:10. Local time. */
export function time(moment) {
  const at = new Date(moment);
  const today = at.toDateString() === new Date().toDateString();
  return today ? clock.format(at) : `${day.format(at)} ${clock.format(at)}`;
}

/** Hours and minutes alone. */
export const hours = (moment) => clock.format(new Date(moment));

export const timeOfDay = (moment) => clockSeconds.format(new Date(moment));

/** `write_back` as people write it. */
export const words = (label) => label.replaceAll("_", " ");

/** `1 answer`, `2 answers`. */
export const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;
