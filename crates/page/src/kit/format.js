// Numbers and times for people, and round values for axes. All times are UTC but those of `clock`.

export const MINUS = '\u2212';
export const DAY = 86_400_000;

/** A number with fixed decimals, thousands separators and a true minus sign; an en dash when it is not a number. */
export function number(value, decimals = 2, sign = false) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '\u2013';
  const [whole, fraction] = Math.abs(value).toFixed(decimals).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',') + (fraction ? '.' + fraction : '');
  const zero = !/[1-9]/.test(grouped);
  return (value < 0 && !zero ? MINUS : sign && !zero ? '+' : '') + grouped;
}

/** A number in three digits or more, by the rule of the command line (telemetry/src/number.rs); a text or a switch unchanged. */
export function short(value) {
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  if (value === null || value === undefined || !Number.isFinite(value)) return '\u2013';
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return number(value, 0);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(3).replaceAll('-', MINUS).replace('e+', 'e');
  return number(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 ? 3 : size >= 0.01 ? 4 : size >= 0.001 ? 5 : 6);
}

/** A fraction as per cent. */
export const percent = (value, decimals = 1, sign = false) => {
  const text = number(value === null || value === undefined ? null : value * 100, decimals, sign);
  return text === '\u2013' ? text : text + ' %';
};

const UNITS = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

/** A large quantity in short form: 12.3k, 4.5M. */
export function compact(value) {
  const size = Math.abs(value ?? NaN);
  const [limit, suffix] = UNITS.find(([limit]) => size >= limit) ?? [];
  return limit ? number(value / limit, size >= 100 * limit ? 0 : 1).replace(/\.0$/, '') + suffix : short(value);
}

export const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
export const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
export const two = (n) => String(n).padStart(2, '0');

/** 2024-03-01, or with time 2024-03-01 14:30. */
export function date(ms, time = false) {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return '\u2013';
  const day = `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`;
  return time ? `${day} ${two(d.getUTCHours())}:${two(d.getUTCMinutes())}` : day;
}

/** 2024-03-01 14:30. */
export const moment = (ms) => date(ms, true);

/** A bar length such as 15m, 4h, 1d. */
export function timeframe(ms) {
  for (const [unit, suffix] of [[7 * DAY, 'w'], [DAY, 'd'], [3_600_000, 'h'], [60_000, 'm'], [1000, 's']]) {
    if (ms >= unit && ms % unit === 0) return ms / unit + suffix;
  }
  return ms > 0 ? ms + ' ms' : '';
}

/** A span of time in words of at most two units: 3d 4h. */
export function duration(ms) {
  const parts = [];
  for (const [unit, suffix] of [[DAY, 'd'], [3_600_000, 'h'], [60_000, 'm']]) {
    const count = Math.floor(ms / unit);
    ms -= count * unit;
    if (count > 0) parts.push(count + suffix);
  }
  return parts.slice(0, 2).join(' ') || '0m';
}

/** "1,204", and with a noun "1 trade", "1,204 trades". */
export const count = (n, noun) => number(n, 0) + (noun ? ` ${noun}${n === 1 ? '' : 's'}` : '');

/** Class of a signed value, for colour. */
export const tone = (value) => (value > 0 ? 'up' : value < 0 ? 'down' : '');

/** First position in an ascending array whose value is not below `value`. */
export function lowerBound(array, value) {
  let low = 0;
  let high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const seconds = (value) => {
  if (value === null || value === undefined) return '\u2013';
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 60) return `${Math.round(value)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
};

export const milliseconds = (value) => {
  if (value === null || value === undefined) return '\u2013';
  if (value >= 60000) return seconds(value / 1000);
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  if (value >= 100) return `${value.toFixed(0)} ms`;
  if (value >= 1) return `${value.toFixed(1)} ms`;
  return `${(value * 1000).toFixed(0)} µs`;
};

// In local time, because people compare it with their clock.
export const clock = (text) => {
  const at = new Date(text);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
};

export const ago = (text) => {
  if (!text) return '\u2013';
  const passed = (Date.now() - Date.parse(text)) / 1000;
  if (passed < 5) return 'just now';
  if (passed < 90) return `${Math.round(passed)} s ago`;
  if (passed < 5400) return `${Math.round(passed / 60)} min ago`;
  if (passed < 129600) return `${Math.round(passed / 3600)} h ago`;
  if (passed < 86400 * 45) return `${Math.round(passed / 86400)} d ago`;
  return date(Date.parse(text));
};

/** Round step of 1, 2, 2.5 or 5 times a power of ten that cuts `span` into at most `most` parts. */
export function niceStep(span, most) {
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 2.5, 5, 10]) if (factor * power >= rough * 0.999) return factor * power;
  return 10 * power;
}

/** Round values inside [low, high]. */
export function niceTicks(low, high, most) {
  if (!(high > low)) return Number.isFinite(low) ? [low] : [];
  const step = niceStep(high - low, most);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

/** Round values for a logarithmic axis. */
export function logTicks(low, high, most) {
  if (high / low < 3) return niceTicks(low, high, most);
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) ticks.push(value);
    }
  }
  const keep = Math.ceil(ticks.length / Math.max(2, most));
  return ticks.filter((_, i) => i % keep === 0);
}

export const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * 60_000);
export const DAY_STEPS = [1, 2, 4, 7, 14];
export const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120, 240];

/** Round moments in [from, to] at least `gap` ms apart, each with its label; larger units are marked `major`. */
export function timeTicks(from, to, gap) {
  const ticks = [];
  const push = (ms, text, major) => {
    if (ms >= from && ms <= to) ticks.push({ ms, text, major });
  };
  const dayText = (d) => `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`;
  const clock = CLOCK_STEPS.find((step) => step >= gap);
  if (clock) {
    for (let ms = Math.ceil(from / clock) * clock; ms <= to; ms += clock) {
      const d = new Date(ms);
      const midnight = ms % DAY === 0;
      push(ms, midnight ? dayText(d) : `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`, midnight);
    }
    return ticks;
  }
  const days = DAY_STEPS.find((step) => step * DAY >= gap);
  const first = new Date(from);
  if (days) {
    for (let month = Date.UTC(first.getUTCFullYear(), first.getUTCMonth(), 1); month <= to; ) {
      const d = new Date(month);
      const nextMonth = Date.UTC(d.getUTCFullYear(), d.getUTCMonth() + 1, 1);
      for (let ms = month; ms < nextMonth && ms <= to; ms += days * DAY) {
        if (ms !== month && nextMonth - ms < 0.75 * days * DAY) break;
        const day = new Date(ms);
        const january = ms === month && d.getUTCMonth() === 0;
        push(ms, january ? String(d.getUTCFullYear()) : ms === month ? MONTHS[d.getUTCMonth()] : dayText(day), ms === month);
      }
      month = nextMonth;
    }
    return ticks;
  }
  const months = MONTH_STEPS.find((step) => step * 30 * DAY >= gap) ?? 600;
  const year = first.getUTCFullYear();
  for (let month = Math.floor((year * 12 + first.getUTCMonth()) / months) * months; ; month += months) {
    const ms = Date.UTC(Math.floor(month / 12), month % 12, 1);
    if (ms > to || ticks.length > 500) break;
    push(ms, month % 12 === 0 ? String(Math.floor(month / 12)) : MONTHS[month % 12], month % 12 === 0);
  }
  return ticks;
}

/** A text for evenly spaced ticks: as many digits as tell them apart, the same for all. */
export const tickText = (found, kind = 'number') => {
  const step = found.length > 1 ? Math.abs(found[1] - found[0]) : Math.abs(found[0] ?? 1) || 1;
  const factor = kind === 'percent' ? 100 : 1;
  const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step * factor) + 1e-9)));
  // A step of 2.5 needs one digit more than one of 2.
  const isEven = Math.abs(step * factor * 10 ** digits - Math.round(step * factor * 10 ** digits)) < 1e-6;
  const exact = new Intl.NumberFormat('en-GB', {
    minimumFractionDigits: isEven ? digits : digits + 1,
    maximumFractionDigits: isEven ? digits : digits + 1,
  });
  const largest = Math.max(...found.map(Math.abs), 0);
  return (value) => {
    if (kind === 'seconds' && largest >= 120)
      return value < 60 ? `${Math.round(value)} s` : seconds(value).replace(/ 0 (s|min)$/, '');
    const unit = kind !== 'percent' && largest >= 1e4 ? [1e9, 1e6, 1e3].find((one) => largest >= one) : 1;
    const text =
      unit > 1
        ? `${Number((value / unit).toPrecision(4))}${{ 1e9: 'G', 1e6: 'M', 1e3: 'k' }[unit]}`
        : exact.format(value * factor);
    return `${value === 0 ? text.replace('-', '').replace(/^0k$/, '0') : text.replace('-', '−')}${kind === 'percent' ? ' %' : kind === 'seconds' ? ' s' : ''}`;
  };
};

/** A single tick without trailing zeros. */
export function tickLabel(value) {
  const size = Math.abs(value);
  if (size >= 1e5) return compact(value);
  if (size > 0 && size < 1e-3) return value.toExponential(0).replace(/-/g, MINUS);
  return String(Number(value.toPrecision(6))).replace('-', MINUS);
}

/** Decimals that write a step between ticks in full. */
export function stepDecimals(step) {
  let decimals = 0;
  while (decimals < 10 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6) decimals++;
  return decimals;
}
