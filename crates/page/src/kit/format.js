// Numbers, dates and small DOM helpers. All times are UTC; all text enters the page as text nodes.

const MINUS = '\u2212';
const DAY = 86_400_000;

/** A number with fixed decimals, thousands separators and a true minus sign; an en dash when it is not a number. */
function number(value, decimals = 2, sign = false) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '\u2013';
  const [whole, fraction] = Math.abs(value).toFixed(decimals).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',') + (fraction ? '.' + fraction : '');
  const zero = !/[1-9]/.test(grouped);
  return (value < 0 && !zero ? MINUS : sign && !zero ? '+' : '') + grouped;
}

/** A fraction as per cent. */
const percent = (value, decimals = 2, sign = true) => {
  const text = number(value === null || value === undefined ? null : value * 100, decimals, sign);
  return text === '\u2013' ? text : text + '\u202f%';
};

/** A large quantity in short form: 12.3k, 4.5M. */
function compact(value) {
  if (!Number.isFinite(value)) return '\u2013';
  const size = Math.abs(value);
  for (const [limit, suffix] of [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']]) {
    if (size >= limit) return number(value / limit, size >= 100 * limit ? 0 : size >= 10 * limit ? 1 : 2) + suffix;
  }
  return number(value, size >= 100 || Number.isInteger(value) ? 0 : 2);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const two = (n) => String(n).padStart(2, '0');

/** 2024-03-01, or with time 2024-03-01 14:30. */
function date(ms, time = false) {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return '\u2013';
  const day = `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`;
  return time ? `${day} ${two(d.getUTCHours())}:${two(d.getUTCMinutes())}` : day;
}

/** A bar length such as 15m, 4h, 1d. */
function timeframe(ms) {
  for (const [unit, suffix] of [[7 * DAY, 'w'], [DAY, 'd'], [3_600_000, 'h'], [60_000, 'm'], [1000, 's']]) {
    if (ms >= unit && ms % unit === 0) return ms / unit + suffix;
  }
  return ms > 0 ? ms + ' ms' : '';
}

/** A span of time in words of at most two units: 3d 4h. */
function duration(ms) {
  const parts = [];
  for (const [unit, suffix] of [[DAY, 'd'], [3_600_000, 'h'], [60_000, 'm']]) {
    const count = Math.floor(ms / unit);
    ms -= count * unit;
    if (count > 0) parts.push(count + suffix);
  }
  return parts.slice(0, 2).join(' ') || '0m';
}

/** "1 trade", "1,204 trades". */
const count = (n, noun) => `${number(n, 0)} ${noun}${n === 1 ? '' : 's'}`;

/** Class of a signed value, for colour. */
const tone = (value) => (value > 0 ? 'up' : value < 0 ? 'down' : '');

/** A DOM element with attributes and children; functions become listeners, strings become text. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const byId = (id) => document.getElementById(id);

/** Hides a section, and its link in the navigation, when it has nothing to show. */
function setShown(id, shown) {
  byId(id).hidden = !shown;
  for (const link of document.querySelectorAll(`nav a[href="#${id}"]`)) link.hidden = !shown;
}

const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : NaN);
const sum = (values) => values.reduce((a, b) => a + b, 0);

function median(values) {
  if (!values.length) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** First position in an ascending array whose value is not below `value`. */
function lowerBound(array, value) {
  let low = 0;
  let high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
