// Everything between the charts and the trade list: headline figures, symbols, months, distributions, breakdowns.

const metricByKey = new Map(report.metrics.map((row) => [row.key, row]));

/** Label without its unit, and the unit: "Return [%]" gives "Return" and "%". */
function labelParts(label) {
  const match = /^(.*\S)\s*\[(.+)\]$/.exec(label);
  return match ? { name: match[1], unit: match[2] } : { name: label, unit: '' };
}

/** A figure over all data of a scope: of one symbol among several, or of all. */
function figure(key, symbol) {
  const row = metricByKey.get(key);
  if (!row) return null;
  const { name, unit } = labelParts(row.label);
  const series = symbol === null ? null : report.series.find((one) => one.symbol === symbol && one.figures.length);
  const raw = series ? series.figures[report.metrics.indexOf(row)] ?? null : row.value === null ? null : row.text;
  const text = raw === null || raw === '' ? '\u2013' : raw.replace(/^-(?=[\d.])/, MINUS);
  const bare = text.replace(/\s*%$/, '');
  const hasUnit = unit === '%' || text !== bare;
  const negative = bare.startsWith(MINUS);
  const sign = !/[1-9]/.test(bare) ? 0 : negative ? -1 : 1;
  return { name, text: bare, unit: text === '\u2013' ? '' : hasUnit ? '%' : unit, sign };
}

function showHeadline(symbol) {
  const tinted = new Set(['total_return', 'excess_return', 'alpha', 'max_drawdown']);
  const cells = report.headline.map((key) => ({ key, ...figure(key, symbol) })).filter((cell) => cell.text);
  byId('headline').replaceChildren(
    ...cells.map(({ key, name, text, unit, sign }, i) =>
      h('div', { class: i < 2 ? 'figure lead' : 'figure', 'data-figure': key },
        h('dt', { title: name }, name),
        h('dd', { class: tinted.has(key) ? tone(sign) : '' }, text, unit ? h('small', {}, unit === '%' ? '%' : ` ${unit}`) : null)),
    ),
  );
  byId('headline').hidden = cells.length === 0;
  byId('verdict').replaceChildren(
    ...(report.verdict ? [h('strong', { id: 'judged' }, report.verdict), h('br')] : []),
    sentence(symbol),
  );
  const table = partsTable(report.parts);
  byId('parts').hidden = symbol !== null && report.series.length > 1 || table === null || report.parts.columns.length < 2;
  byId('parts').replaceChildren(...(table ? [table] : []));
  byId('headline-of').textContent = report.parts.columns.length > 1 ? 'The whole period: all parts one after the other' : '';
  byId('eyebrow').textContent = 'Back-test report' + (report.series.length > 1 ? ` \u00b7 ${symbol ?? 'all symbols'}` : '');
}

/** The figures of all data as a sentence, from the same texts. */
function sentence(symbol) {
  const say = (key) => {
    const found = figure(key, symbol);
    return found && found.text !== '\u2013' ? found.text + (found.unit === '%' ? ' %' : '') : null;
  };
  const trades = say('trades');
  if (trades === '0') return 'No trades: the entry condition never became true in this data.';
  const total = say('total_return');
  const hold = say('benchmark_return');
  const wins = say('win_rate');
  const fall = say('max_drawdown');
  if (!total) return '';
  return [
    `Over the whole period it returned ${total}`,
    hold ? ` while ${report.benchmark} returned ${hold}` : '',
    trades ? `, in ${trades} trade${trades === '1' ? '' : `s of which ${wins ?? 'none'} won`}` : '',
    fall ? `. The maximum drawdown was ${fall.replace(MINUS, '')}` : '',
    '.',
  ].join('');
}

// ---- symbols ----

let symbolOrder = { key: null, falling: true };

function showSymbols(choose) {
  setShown('symbols', report.series.length > 1);
  if (report.series.length < 2) return;
  const rows = report.series.map((series, i) => {
    const trades = allTrades.filter((trade) => trade.series === i);
    return {
      i,
      symbol: series.symbol,
      bars: series.n_bars,
      change: series.summary.change,
      hold: series.summary.hold,
      drawdown: series.summary.drawdown,
      trades: series.n_trades,
      wins: trades.length ? trades.filter((trade) => trade.pnl > 0).length / trades.length : NaN,
      r: mean(trades.map((trade) => trade.r).filter((r) => r !== null)),
    };
  });
  const columns = [
    ['symbol', 'Symbol', (row) => row.symbol],
    ['spark', 'Equity', null],
    ['change', 'Return', (row) => changeText(row.change ?? NaN)],
    ['hold', 'Buy & hold', (row) => changeText(row.hold ?? NaN)],
    ['drawdown', 'Max drawdown, daily', (row) => changeText(row.drawdown ?? NaN)],
    ['trades', 'Trades', (row) => number(row.trades, 0)],
    ['wins', 'Won', (row) => percent(row.wins, 1)],
    ['r', 'Mean R', (row) => number(row.r, 2, true)],
    ['bars', 'Bars', (row) => number(row.bars, 0)],
  ];
  const optional = new Set(['bars', 'wins', 'hold']);
  const fill = () => {
    if (symbolOrder.key) sortRows(rows, symbolOrder);
    byId('symbol-table').replaceChildren(
      h('thead', {}, h('tr', {}, ...columns.map(([key, label, text]) => sortHeader(key, label, text ? symbolOrder : null, fill, optional.has(key))))),
      h('tbody', {}, ...rows.map((row) => h('tr', { tabindex: 0, click: () => choose(row.i), keydown: onEnter(() => choose(row.i)) },
        ...columns.map(([key, , text]) => h('td', { class: [key === 'symbol' ? 'name' : key === 'spark' ? 'spark' : 'num', optional.has(key) ? 'wide-only' : '', key === 'change' || key === 'r' ? tone(row[key]) : ''].join(' ') },
          text ? text(row) : spark(unpackCurve(report.series[row.i].curve))))))),
    );
  };
  fill();
}

// Taken from the page, so that this file contains no URL.
const SVG = document.querySelector('svg').namespaceURI;

/** A miniature of an equity curve. */
function spark(curve) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 120 26');
  svg.setAttribute('aria-hidden', 'true');
  const values = [curve.start, ...curve.equity];
  const low = Math.min(...values);
  const high = Math.max(...values);
  const step = Math.max(1, Math.floor(values.length / 120));
  const points = values
    .map((value, i) => [(i / Math.max(1, values.length - 1)) * 120, 24 - ((value - low) / (high - low || 1)) * 22])
    .filter((_, i) => i % step === 0 || i === values.length - 1);
  const path = document.createElementNS(SVG, 'polyline');
  path.setAttribute('points', points.map(([x, y]) => x.toFixed(1) + ',' + y.toFixed(1)).join(' '));
  svg.append(path);
  return svg;
}

/** Sorts in place by a column; missing values go last either way. */
function sortRows(rows, { key, falling }) {
  const missing = (value) => value === null || value === undefined || Number.isNaN(value);
  rows.sort((a, b) => {
    const [x, y] = [a[key], b[key]];
    if (missing(x) || missing(y)) return missing(x) - missing(y);
    const order = typeof x === 'string' ? x.localeCompare(y) : x - y;
    return falling ? -order : order;
  });
}

/** A column heading that sorts; `order` is null for a column that cannot. */
function sortHeader(key, label, order, refresh, optional = false) {
  const active = order?.key === key;
  const sort = () => {
    order.falling = active ? !order.falling : key !== 'symbol' && key !== 'reason';
    order.key = key;
    refresh();
  };
  return h('th', { scope: 'col', class: optional ? 'wide-only' : '', 'aria-sort': active ? (order.falling ? 'descending' : 'ascending') : null },
    order ? h('button', { type: 'button', click: sort }, label, h('span', { class: 'arrow', 'aria-hidden': 'true' }, active ? (order.falling ? '\u2193' : '\u2191') : '')) : label);
}

const onEnter = (action) => (event) => {
  if (event.key !== 'Enter' && event.key !== ' ') return;
  event.preventDefault();
  action();
};

// ---- months and drawdowns ----

function showMonths(line, held) {
  setShown('months', line !== null);
  if (!line) return;
  const ends = new Map();
  for (let i = 1; i < line.ms.length; i++) {
    const d = new Date(line.ms[i]);
    ends.set(d.getUTCFullYear() * 12 + d.getUTCMonth(), line.equity[i]);
  }
  const keys = [...ends.keys()];
  const months = new Map();
  const years = new Map();
  let before = line.equity[0];
  let yearStart = before;
  keys.forEach((key, at) => {
    months.set(key, change(before, ends.get(key)));
    before = ends.get(key);
    const year = Math.floor(key / 12);
    years.set(year, change(yearStart, before));
    if (Math.floor((keys[at + 1] ?? Infinity) / 12) !== year) yearStart = before;
  });
  const heldYears = held ? yearChanges(held) : new Map();
  const strength = Math.max(...[...months.values()].map(Math.abs)) || 1;
  const text = (value) => (report.additive ? changeText(value) : number(value * 100, 1, true));
  const cell = (value, extra = '') => value === undefined
    ? h('td', { class: 'none ' + extra }, '\u00b7')
    : h('td', { class: `heat ${value < 0 ? 'loss' : 'gain'} ${extra}`, style: `--heat:${(Math.sqrt(Math.min(1, Math.abs(value) / strength)) * 62).toFixed(1)}%` }, text(value));
  byId('month-table').replaceChildren(
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, ''), ...MONTHS.map((name) => h('th', { scope: 'col' }, name)), h('th', { scope: 'col', class: 'total' }, 'Year'), ...(held ? [h('th', { scope: 'col' }, 'Bench.'), h('th', { scope: 'col' }, 'Excess')] : []))),
    h('tbody', {}, ...[...years].map(([year, total]) => h('tr', {},
      h('th', { scope: 'row' }, String(year)),
      ...MONTHS.map((_, month) => cell(months.get(year * 12 + month))),
      h('td', { class: 'total ' + tone(total) }, text(total)),
      ...(held ? [h('td', {}, text(heldYears.get(year))), h('td', { class: tone(total - heldYears.get(year)) }, text(total - heldYears.get(year)))] : [])))),
  );
  byId('month-unit').textContent = report.additive ? 'price units' : '%';
  const values = [...months.values()];
  byId('month-facts').textContent = values.length < 2 ? '' :
    `${values.filter((v) => v > 0).length} of ${values.length} months gained; best ${changeText(Math.max(...values), 1)}, worst ${changeText(Math.min(...values), 1)}, median ${changeText(median(values), 1)}.`;
  showDrawdowns(line);
}

/** Change of a line in each year. */
function yearChanges(line) {
  const years = new Map();
  let start = line.equity[0];
  for (let i = 1; i < line.ms.length; i++) {
    const year = new Date(line.ms[i]).getUTCFullYear();
    years.set(year, change(start, line.equity[i]));
    if (i + 1 < line.ms.length && new Date(line.ms[i + 1]).getUTCFullYear() !== year) start = line.equity[i];
  }
  return years;
}

function showDrawdowns(line) {
  const falls = worstDrawdowns(line, 5);
  byId('fall-box').hidden = falls.length === 0;
  const last = line.ms[line.ms.length - 1];
  byId('fall-table').replaceChildren(
    h('thead', {}, h('tr', {}, ...['Depth', 'Peak', 'Trough', 'Recovered', 'Length'].map((name, i) => h('th', { scope: 'col', class: i === 2 ? 'wide-only' : '' }, name)))),
    h('tbody', {}, ...falls.map((fall) => h('tr', {},
      h('td', { class: 'num down' }, changeText(fall.depth)),
      h('td', { class: 'num' }, date(fall.peak)),
      h('td', { class: 'num wide-only' }, date(fall.low)),
      h('td', { class: 'num' }, fall.back ? date(fall.back) : 'not yet'),
      h('td', { class: 'num' }, `${number(((fall.back ?? last) - fall.peak) / DAY, 0)}d`)))),
  );
}

// ---- distributions ----

const distribution = { unit: 'ret', trades: [] };
const histogram = makeCanvas(byId('histogram'), drawHistogram);
const excursion = makeCanvas(byId('excursion'), drawExcursion);

function showDistribution(trades) {
  distribution.trades = trades;
  setShown('distribution', trades.length > 0);
  histogram.redraw();
  excursion.redraw();
  const chosen = trades.map((trade) => trade[distribution.unit]).filter((value) => value !== null);
  const text = distribution.unit === 'r' ? (v) => number(v, 2, true) + ' R' : (v) => percent(v, 2, true);
  const wins = chosen.filter((value) => value > 0);
  const losses = chosen.filter((value) => value <= 0);
  byId('histogram-facts').textContent = chosen.length
    ? `Mean ${text(mean(chosen))}, median ${text(median(chosen))}; mean win ${text(mean(wins))}, mean loss ${text(mean(losses))}.`
    : '';
  for (const button of document.querySelectorAll('[data-unit]')) button.setAttribute('aria-pressed', String(button.dataset.unit === distribution.unit));
}

function setDistributionUnit(unit) {
  distribution.unit = unit;
  showDistribution(distribution.trades);
}

function drawHistogram(context, width, height, colours) {
  const { unit, trades } = distribution;
  const values = trades.map((trade) => trade[unit]).filter((value) => value !== null);
  drawValues(context, width, height, colours, values, unit === 'r' ? 'number' : 'percent');
}

/** How often values occur; `kind` says how they are written. */
function drawValues(context, width, height, colours, values, kind) {
  if (!values.length) return;
  const sorted = [...values].sort((a, b) => a - b);
  const quantile = (q) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(q * (sorted.length - 1))))];
  // The outer half per cent on either side is gathered into the end bins, so that one outlier does not hide the shape.
  let low = Math.min(0, quantile(0.005));
  let high = Math.max(0, quantile(0.995));
  if (!(high > low)) [low, high] = [-0.01, 0.01];
  const step = niceStep(high - low, Math.max(8, Math.min(36, Math.round(width / 16))));
  const firstBin = Math.floor(low / step);
  const bins = Math.max(1, Math.ceil(high / step + 1e-9) - firstBin);
  const counts = new Array(bins).fill(0);
  for (const value of values) counts[Math.max(0, Math.min(bins - 1, Math.floor(value / step) - firstBin))]++;
  const plot = { left: 34, right: width - 6, top: 14, bottom: height - 24 };
  const most = Math.max(...counts);
  const x = (value) => plot.left + ((value / step - firstBin) / bins) * (plot.right - plot.left);
  const y = (count) => plot.bottom - (count / most) * (plot.bottom - plot.top);
  context.textAlign = 'right';
  for (const tick of niceTicks(0, most, 4).filter(Number.isInteger)) {
    context.strokeStyle = tick === 0 ? colours.line : colours.grid;
    line(context, plot.left, Math.round(y(tick)) + 0.5, plot.right, Math.round(y(tick)) + 0.5);
    context.fillStyle = colours.muted;
    context.fillText(number(tick, 0), plot.left - 6, y(tick));
  }
  counts.forEach((many, i) => {
    const value = (firstBin + i) * step;
    context.fillStyle = value >= -1e-12 ? colours.up : colours.down;
    withAlpha(context, 0.8, () => context.fillRect(x(value) + 1, y(many), Math.max(1, x(value + step) - x(value) - 2), plot.bottom - y(many)));
  });
  context.textAlign = 'center';
  context.fillStyle = colours.muted;
  const end = (firstBin + bins) * step;
  const ticks = niceTicks(firstBin * step, end, Math.floor(width / 70));
  const tickStep = ticks.length > 1 ? ticks[1] - ticks[0] : step;
  const decimals = stepDecimals(kind === 'percent' ? tickStep * 100 : tickStep);
  for (const tick of ticks) {
    const text = kind === 'percent' ? percent(tick, decimals) : number(tick, decimals);
    context.fillText(text, Math.max(plot.left, Math.min(plot.right - 14, x(tick))), height - 10);
  }
  const centre = x(Math.max(firstBin * step, Math.min(end, mean(values))));
  context.strokeStyle = colours.ink;
  context.setLineDash([3, 3]);
  line(context, centre, plot.top - 4, centre, plot.bottom);
  context.setLineDash([]);
  context.fillStyle = colours.ink;
  context.textAlign = centre > width - 60 ? 'right' : 'left';
  context.fillText('mean', centre + (centre > width - 60 ? -5 : 5), plot.top - 2);
}

// ---- days and durations ----

const daily = { changes: [], ms: [], held: [] };
const dayHistogram = makeCanvas(byId('day-histogram'), (context, width, height, colours) =>
  drawValues(context, width, height, colours, daily.changes, report.additive ? 'number' : 'percent'));
const heldHistogram = makeCanvas(byId('held-histogram'), (context, width, height, colours) =>
  drawValues(context, width, height, colours, daily.held, 'number'));

function showDays(line, trades, symbol) {
  setShown('days', line !== null);
  if (!line) return;
  daily.ms = [...line.ms].slice(1);
  daily.changes = daily.ms.map((_, i) => change(line.equity[i], line.equity[i + 1]) || 0);
  daily.held = trades.map((trade) => trade.bars);
  dayHistogram.redraw();
  heldHistogram.redraw();
  byId('held-box').hidden = trades.length === 0;
  const extreme = (better) => daily.changes.reduce((best, value, i) => (better(value, daily.changes[best]) ? i : best), 0);
  const [best, worst] = [extreme((a, b) => a > b), extreme((a, b) => a < b)];
  const say = (key) => {
    const found = figure(key, symbol);
    return found && found.text !== '\u2013' ? `${found.name} ${found.text}${found.unit === '%' ? ' %' : ''}` : null;
  };
  byId('day-facts').textContent = [
    ...['volatility', 'value_at_risk', 'skew'].map(say),
    `best day ${changeText(daily.changes[best])} (${date(daily.ms[best])})`,
    `worst ${changeText(daily.changes[worst])} (${date(daily.ms[worst])})`,
    `${number(daily.changes.filter((value) => value > 0).length, 0)} of ${number(daily.changes.length, 0)} days gained`,
  ].filter(Boolean).join('; ') + '. The value at risk is the daily return that 5 of 100 days fall short of, were returns normal.';
  if (!trades.length) return;
  const spans = trades.map((trade) => trade.exit_ms - trade.entry_ms);
  const longest = spans.reduce((a, b) => Math.max(a, b), 0);
  byId('held-facts').textContent =
    `Bars from entry to exit. Held ${duration(median(spans))} in the median, ${duration(longest)} at most; median ${number(median(daily.held), 0)} bars.`;
}

/** The trades that made and lost most. */
function showExtremes(trades, choose) {
  setShown('extremes', trades.length > 0);
  const sorted = [...trades].sort((a, b) => b.ret - a.ret);
  const some = Math.min(5, Math.ceil(sorted.length / 2));
  const rows = [...sorted.slice(0, some), ...sorted.slice(Math.max(some, sorted.length - 5))];
  const several = report.series.length > 1;
  byId('extreme-table').replaceChildren(
    h('thead', {}, h('tr', {}, ...['Result', 'R', ...(several ? ['Symbol'] : []), 'Side', 'Entry', 'Held', 'Exit'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...rows.map((trade) => h('tr', { tabindex: '0', click: () => choose(trade), keydown: onEnter(() => choose(trade)) },
      h('td', { class: 'num ' + tone(trade.pnl) }, percent(trade.ret, 2, true)),
      h('td', { class: 'num' }, number(trade.r, 2, true)),
      ...(several ? [h('td', {}, trade.symbol)] : []),
      h('td', {}, trade.side > 0 ? 'Long' : 'Short'),
      h('td', { class: 'num' }, date(trade.entry_ms)),
      h('td', { class: 'num' }, duration(trade.exit_ms - trade.entry_ms)),
      h('td', {}, trade.reason || '\u2013')))),
  );
}

/** How far each trade went against the position before it ended where it did. */
function drawExcursion(context, width, height, colours) {
  const points = distribution.trades.filter((trade) => trade.adverse !== null && trade.ret !== null);
  if (!points.length) return;
  const edge = (values, q) => [...values].sort((a, b) => a - b)[Math.round(q * (values.length - 1))];
  const worst = Math.max(edge(points.map((trade) => -trade.adverse), 0.99), 1e-4) * 1.08;
  const results = points.map((trade) => trade.ret);
  const top = Math.max(edge(results, 0.995), worst * 0.2) * 1.08;
  const bottom = Math.min(edge(results, 0.005), -worst * 0.2) * 1.08;
  const plot = { left: 44, right: width - 8, top: 8, bottom: height - 24 };
  const x = (value) => plot.left + (Math.min(value, worst) / worst) * (plot.right - plot.left);
  const y = (value) => plot.bottom - ((Math.max(bottom, Math.min(top, value)) - bottom) / (top - bottom)) * (plot.bottom - plot.top);
  const rows = niceTicks(bottom, top, 5);
  const decimalsOf = (ticks) => (ticks.length > 1 ? stepDecimals((ticks[1] - ticks[0]) * 100) : 1);
  context.textAlign = 'right';
  for (const tick of rows) {
    context.strokeStyle = Math.abs(tick) < 1e-12 ? colours.line : colours.grid;
    line(context, plot.left, Math.round(y(tick)) + 0.5, plot.right, Math.round(y(tick)) + 0.5);
    context.fillStyle = colours.muted;
    context.fillText(percent(tick, decimalsOf(rows)), plot.left - 6, y(tick));
  }
  const columns = niceTicks(0, worst, Math.floor(width / 90));
  context.textAlign = 'center';
  for (const tick of columns) context.fillText(percent(tick, decimalsOf(columns)), Math.max(plot.left + 8, Math.min(plot.right - 16, x(tick))), height - 10);
  context.strokeStyle = colours.hold;
  context.setLineDash([2, 4]);
  const corner = Math.min(worst, -bottom);
  line(context, x(0), y(0), x(corner), y(-corner));
  context.setLineDash([]);
  withAlpha(context, points.length > 2000 ? 0.25 : points.length > 300 ? 0.5 : 0.75, () => {
    for (const trade of points) {
      context.fillStyle = trade.pnl > 0 ? colours.up : colours.down;
      context.beginPath();
      context.arc(x(-trade.adverse), y(trade.ret), 2.6, 0, 2 * Math.PI);
      context.fill();
    }
  });
}

// ---- breakdowns ----

function showBreakdowns(trades, intraday) {
  setShown('breakdown', trades.length > 0);
  if (!trades.length) return;
  const group = (label, keyOf, order) => {
    const groups = new Map();
    for (const trade of trades) {
      const key = keyOf(trade);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(trade);
    }
    const entries = [...groups];
    if (order) entries.sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]));
    else entries.sort((a, b) => b[1].length - a[1].length);
    return breakdownTable(label, entries);
  };
  countHours(trades);
  const weekday = (trade) => WEEKDAYS[(new Date(trade.entry_ms).getUTCDay() + 6) % 7];
  byId('breakdown-tables').replaceChildren(
    group('Exit', (trade) => trade.reason || '(none)'),
    group('Side', (trade) => (trade.side > 0 ? 'Long' : 'Short'), ['Long', 'Short']),
    group('Entry weekday', weekday, WEEKDAYS),
    ...(intraday ? [hourBox] : []),
  );
}

const hours = { totals: new Array(24).fill(0), counts: new Array(24).fill(0) };
const hourBox = h('div', { class: 'hours' }, h('p', { class: 'caption' }, 'Sum of returns by hour of entry, UTC'), h('canvas', { id: 'hour-canvas', role: 'img', 'aria-label': 'Sum of returns by hour of entry' }));
const hourChart = makeCanvas(hourBox.querySelector('canvas'), drawHours);

function countHours(trades) {
  hours.totals.fill(0);
  hours.counts.fill(0);
  for (const trade of trades) {
    const hour = new Date(trade.entry_ms).getUTCHours();
    hours.totals[hour] += trade.ret ?? 0;
    hours.counts[hour]++;
  }
  hourChart.redraw();
}

function drawHours(context, width, height, colours) {
  const plot = { left: 44, right: width - 4, top: 16, bottom: height - 24 };
  const most = Math.max(...hours.totals, 0);
  const least = Math.min(...hours.totals, 0);
  const span = most - least || 1;
  const y = (value) => plot.bottom - ((value - least) / span) * (plot.bottom - plot.top);
  const wide = (plot.right - plot.left) / 24;
  const ticks = niceTicks(least, most, 4);
  const decimals = ticks.length > 1 ? stepDecimals((ticks[1] - ticks[0]) * 100) : 0;
  context.textAlign = 'right';
  for (const tick of ticks) {
    const at = Math.round(y(tick)) + 0.5;
    context.strokeStyle = Math.abs(tick) < span / 1e6 ? colours.line : colours.grid;
    line(context, plot.left, at, plot.right, at);
    context.fillStyle = colours.muted;
    context.fillText(percent(tick, decimals), plot.left - 6, at);
  }
  context.textAlign = 'center';
  hours.totals.forEach((total, hour) => {
    const x = plot.left + hour * wide;
    context.fillStyle = total < 0 ? colours.down : colours.up;
    withAlpha(context, 0.85, () => context.fillRect(x + 2, Math.min(y(0), y(total)), wide - 4, Math.abs(y(total) - y(0))));
    context.fillStyle = colours.muted;
    if (hour % 3 === 0) context.fillText(two(hour), x + wide / 2, height - 10);
  });
}

/** Groups of trades with a bar for the sum of their returns, left of the middle for losses. */
function breakdownTable(label, entries) {
  const rows = entries.slice(0, 24).map(([name, trades]) => ({
    name,
    n: trades.length,
    won: trades.filter((trade) => trade.pnl > 0).length / trades.length,
    r: mean(trades.map((trade) => trade.r).filter((r) => r !== null)),
    total: sum(trades.map((trade) => trade.ret ?? 0)),
  }));
  const most = Math.max(...rows.map((row) => Math.abs(row.total))) || 1;
  return h('div', { class: 'scroll' }, h('table', { class: 'breakdown' },
    h('thead', {}, h('tr', {}, ...[label, 'Trades', 'Won', 'Mean R', 'Sum of returns'].map((name, i) => h('th', { scope: 'col', colspan: i === 4 ? 2 : null, class: i === 2 ? 'wide-only' : '' }, name)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {},
      h('td', { class: 'name' }, row.name),
      h('td', { class: 'num' }, number(row.n, 0)),
      h('td', { class: 'num wide-only' }, percent(row.won, 0)),
      h('td', { class: 'num' }, number(row.r, 2, true)),
      h('td', { class: 'num ' + tone(row.total) }, percent(row.total, 1, true)),
      h('td', { class: 'bar' }, h('span', { class: row.total < 0 ? 'loss' : 'gain', style: `--size:${((Math.abs(row.total) / most) * 50).toFixed(1)}%` })))))));
}
