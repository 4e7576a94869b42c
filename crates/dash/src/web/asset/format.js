// Numbers and times for people.

const DASH = "–";
const groups = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

export const count = (value) => (value === null || value === undefined ? DASH : groups.format(value));

// About four significant digits.
export const number = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return groups.format(value).replace("-", "−");
  let text;
  if (size >= 1e7 || size < 1e-4) text = value.toExponential(3);
  else if (size >= 1000) text = groups.format(value);
  else if (size >= 100) text = value.toFixed(1);
  else if (size >= 10) text = value.toFixed(2);
  else if (size >= 0.01) text = value.toFixed(3);
  else text = value.toFixed(6);
  return text.replace("-", "−");
};

export const compact = (value) => {
  if (value === null || value === undefined) return DASH;
  const size = Math.abs(value);
  for (const [unit, name] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ]) {
    if (size >= unit) return `${(value / unit).toFixed(size / unit >= 100 ? 0 : 1).replace(/\.0$/, "")}${name}`;
  }
  return number(value);
};

export const percent = (share, digits = 1) =>
  share === null || share === undefined ? DASH : `${(share * 100).toFixed(digits)} %`.replace("-", "−");

export const signed = (value, text) => (value > 0 ? `+${text}` : text);

export const seconds = (value) => {
  if (value === null || value === undefined) return DASH;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 60) return `${Math.round(value)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
};

export const milliseconds = (value) => {
  if (value === null || value === undefined) return DASH;
  if (value >= 60000) return seconds(value / 1000);
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  if (value >= 100) return `${value.toFixed(0)} ms`;
  if (value >= 1) return `${value.toFixed(1)} ms`;
  return `${(value * 1000).toFixed(0)} µs`;
};

const pad = (value) => String(value).padStart(2, "0");

export const date = (ms) => {
  const at = new Date(ms);
  return `${at.getUTCFullYear()}-${pad(at.getUTCMonth() + 1)}-${pad(at.getUTCDate())}`;
};

export const moment = (ms) => {
  const at = new Date(ms);
  return `${date(ms)} ${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}`;
};

// Of this machine's clock, since it is compared with it.
export const clock = (text) => {
  const at = new Date(text);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
};

export const ago = (text) => {
  if (!text) return DASH;
  const passed = (Date.now() - Date.parse(text)) / 1000;
  if (passed < 5) return "just now";
  if (passed < 90) return `${Math.round(passed)} s ago`;
  if (passed < 5400) return `${Math.round(passed / 60)} min ago`;
  if (passed < 129600) return `${Math.round(passed / 3600)} h ago`;
  if (passed < 86400 * 45) return `${Math.round(passed / 86400)} d ago`;
  return date(Date.parse(text));
};

// Round numbers between two bounds, about as many as asked for.
export const ticks = (low, high, wanted) => {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw) * power;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) {
    found.push(Math.abs(at) < step * 1e-9 ? 0 : Number(at.toPrecision(12)));
  }
  return found;
};

// A text for ticks: as many digits as tell them apart, the same for all.
export const tickText = (found, kind = "number") => {
  const step = found.length > 1 ? Math.abs(found[1] - found[0]) : Math.abs(found[0] ?? 1) || 1;
  const factor = kind === "percent" ? 100 : 1;
  const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step * factor) + 1e-9)));
  // A step of 2.5 needs one digit more than one of 2.
  const isEven = Math.abs(step * factor * 10 ** digits - Math.round(step * factor * 10 ** digits)) < 1e-6;
  const exact = new Intl.NumberFormat("en-GB", {
    minimumFractionDigits: isEven ? digits : digits + 1,
    maximumFractionDigits: isEven ? digits : digits + 1,
  });
  const largest = Math.max(...found.map(Math.abs), 0);
  return (value) => {
    if (kind === "seconds" && largest >= 120)
      return value < 60 ? `${Math.round(value)} s` : seconds(value).replace(/ 0 (s|min)$/, "");
    const unit = kind !== "percent" && largest >= 1e4 ? [1e9, 1e6, 1e3].find((one) => largest >= one) : 1;
    const text =
      unit > 1
        ? `${Number((value / unit).toPrecision(4))}${{ 1e9: "G", 1e6: "M", 1e3: "k" }[unit]}`
        : exact.format(value * factor);
    return `${value === 0 ? text.replace("-", "").replace(/^0k$/, "0") : text.replace("-", "−")}${kind === "percent" ? " %" : kind === "seconds" ? " s" : ""}`;
  };
};

// The same for times, at whole hours, days, months and years.
export const timeTicks = (low, high, wanted) => {
  const minute = 60000;
  const steps = [1, 5, 15, 30, 60, 180, 360, 720, 1440, 2880, 10080].map((minutes) => minutes * minute);
  const raw = (high - low) / Math.max(1, wanted);
  const step = steps.find((known) => known >= raw);
  const found = [];
  if (step) {
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
    return {
      at: found,
      text: (ms) => (step >= 1440 * minute ? date(ms).slice(5) : moment(ms).slice(step >= 720 * minute ? 5 : 11)),
    };
  }
  const months = [1, 2, 3, 6, 12, 24, 60, 120].find((known) => known * 30.4 * 1440 * minute >= raw) ?? 240;
  const begin = new Date(low);
  let index = Math.ceil((begin.getUTCFullYear() * 12 + begin.getUTCMonth() + 1) / months) * months;
  for (; ; index += months) {
    const at = Date.UTC(Math.floor(index / 12), index % 12, 1);
    if (at > high) break;
    found.push(at);
  }
  return { at: found, text: (ms) => (months >= 12 ? date(ms).slice(0, 4) : date(ms).slice(0, 7)) };
};
