// Unpacks what the Rust side packed (see pack.rs) into typed arrays and trade objects.

const report = JSON.parse(byId('data').textContent);

function bytes(base64) {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

const floats = (base64) => new Float32Array(bytes(base64).buffer);

/** Expands flat (first, step, count) triples. */
function expand(runs) {
  let length = 0;
  for (let i = 2; i < runs.length; i += 3) length += runs[i];
  const out = new Float64Array(length);
  let at = 0;
  for (let i = 0; i < runs.length; i += 3) {
    for (let k = 0; k < runs[i + 2]; k++) out[at++] = runs[i] + k * runs[i + 1];
  }
  return out;
}

/** Reads the variable-length differences of the bars back into prices. */
function decodeBars(base64, n, decimals) {
  const source = bytes(base64);
  const scale = 10 ** decimals;
  const columns = { open: new Float64Array(n), high: new Float64Array(n), low: new Float64Array(n), close: new Float64Array(n) };
  let at = 0;
  const next = () => {
    let value = 0;
    let weight = 1;
    let byte;
    do {
      byte = source[at++];
      value += (byte & 127) * weight;
      weight *= 128;
    } while (byte & 128);
    return value % 2 ? -(value + 1) / 2 : value / 2;
  };
  let previous = 0;
  for (let i = 0; i < n; i++) {
    const open = previous + next();
    const close = open + next();
    columns.high[i] = (open + next()) / scale;
    columns.low[i] = (open - next()) / scale;
    columns.open[i] = open / scale;
    columns.close[i] = close / scale;
    previous = close;
  }
  return columns;
}

/** Bars of one symbol, as the price chart draws them. */
function unpackSeries(packed) {
  const index = expand(packed.index);
  const n = index.length;
  return {
    ...decodeBars(packed.bars, n, packed.decimals),
    symbol: packed.symbol,
    n,
    nBars: packed.n_bars,
    start: index,
    end: index.map((_, i) => (i + 1 < n ? index[i + 1] : packed.n_bars)),
    time: expand(packed.time),
    volume: packed.volume ? floats(packed.volume) : null,
    decimals: packed.decimals,
    timeframe: packed.timeframe_ms,
    marks: packed.marks,
    lines: packed.lines.map(({ name, on_price, values }) => ({ name, onPrice: on_price, values: floats(values) })),
  };
}

const unpackedSeries = new Map();

/** Bars of symbol number i, unpacked when first asked for. */
function barsOf(i) {
  if (!unpackedSeries.has(i)) unpackedSeries.set(i, unpackSeries(report.series[i]));
  return unpackedSeries.get(i);
}

function unpackCurve(packed) {
  return {
    start: packed.start,
    days: expand(packed.days),
    equity: floats(packed.equity),
    holdDays: expand(packed.hold_days),
    hold: floats(packed.hold),
  };
}

const allTrades = report.trades.side.map((side, i) => {
  const trade = { number: i + 1, side };
  for (const [name, column] of Object.entries(report.trades)) if (name !== 'side') trade[name] = column[i];
  trade.reason = report.reasons[trade.reason];
  trade.symbol = report.series[trade.series].symbol;
  return trade;
});

/** Change from one equity to another, in the unit of the report. */
const change = (from, to) => (report.additive ? to - from : to / from - 1);

/** A change of equity as text. */
const changeText = (value, decimals = 2, sign = true) =>
  report.additive ? number(value, Math.abs(value) >= 1000 ? 0 : 4 - Math.min(3, Math.floor(Math.log10(Math.max(1, Math.abs(value))))), sign) : percent(value, decimals, sign);
