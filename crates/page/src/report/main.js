// Puts the page together: which symbol is shown, which trade is chosen, which theme is on.

const several = report.series.length > 1;
const state = { scope: several ? -1 : report.series.length ? 0 : null }; // -1: all symbols

const priceChart = new PriceChart({
  canvas: byId('price-canvas'),
  overview: byId('overview'),
  readout: byId('price-readout'),
  onSelect: selectTrade,
});
const curveChart = new CurveChart({
  canvas: byId('curve-canvas'),
  readout: byId('curve-readout'),
  onPick: (ms) => priceChart.bars && !byId('price').hidden && priceChart.goTo(ms),
});
const tradeList = new TradeList(openTrade);

/** Shows a trade on the chart of its symbol. */
function openTrade(trade) {
  if (state.scope !== trade.series && report.series[trade.series].bars) setScope(trade.series);
  selectTrade(trade, true);
  const box = byId('price').getBoundingClientRect();
  if (!byId('price').hidden && (box.top < 0 || box.bottom > innerHeight)) byId('price').scrollIntoView({ block: 'start' });
}

/** Shows all symbols (-1), one of them, or a report without any (null). */
function setScope(scope) {
  state.scope = scope;
  const one = scope !== null && scope >= 0 ? report.series[scope] : null;
  const trades = scope === null ? [] : one ? allTrades.filter((trade) => trade.series === scope) : allTrades;
  const packedCurve = one ? one.curve : report.portfolio;
  const curve = packedCurve ? unpackCurve(packedCurve) : null;
  const own = curve ? growth(curve.start, curve.days, curve.equity) : null;
  const hold = curve ? growth(curve.start, curve.holdDays, curve.hold) : null;
  const intraday = (one ? [one] : report.series).some((series) => series.timeframe_ms < DAY);
  showHeadline(one ? one.symbol : null);
  setShown('price', one !== null && one.bars !== '');
  if (one && one.bars) {
    priceChart.show(barsOf(scope), trades);
    byId('log').setAttribute('aria-pressed', String(priceChart.log));
    byId('price-title').textContent = [one.symbol, timeframe(one.timeframe_ms)].filter(Boolean).join(' \u00b7 ');
  }
  setShown('equity', own !== null);
  byId('curve-log').hidden = report.additive;
  byId('benchmark-facts').textContent = report.benchmark_note;
  curveChart.show(own, hold, one ? one.marks : report.series[0]?.marks ?? [], one ? one.year_days : report.year_days);
  showMonths(own, hold);
  showDays(own, trades, one ? one.symbol : null);
  showExtremes(trades, openTrade);
  showDistribution(trades);
  showBreakdowns(trades, intraday);
  tradeList.show(trades, several && !one, intraday);
  selectTrade(null, false);
  byId('scope').value = String(scope);
}

function selectTrade(trade, reveal) {
  if (!byId('price').hidden) priceChart.select(trade, reveal);
  tradeList.mark(trade);
  const box = byId('trade-detail');
  const total = priceChart.trades?.length ?? 0;
  if (!trade) {
    box.replaceChildren(h('span', { class: 'hint' }, total ? 'Choose a trade on the chart or in the list to see its stop and target.' : 'No trades.'));
    return;
  }
  const decimals = Math.min(8, report.series[trade.series].decimals);
  const intraday = report.series[trade.series].timeframe_ms < DAY;
  const field = (name, value, kind = '') => h('span', {}, h('i', {}, name), h('b', { class: kind }, value));
  box.replaceChildren(
    field('Trade', `${number(priceChart.trades.indexOf(trade) + 1, 0)} of ${number(total, 0)}`),
    field('Side', trade.side > 0 ? 'Long' : 'Short', trade.side > 0 ? 'long' : 'short'),
    field('Entry', `${number(trade.entry, decimals)} on ${date(trade.entry_ms, intraday)}`),
    field('Exit', `${number(trade.exit, decimals)} on ${date(trade.exit_ms, intraday)}`),
    field('Held', `${count(trade.bars, 'bar')}, ${duration(trade.exit_ms - trade.entry_ms)}`),
    field('Result', `${percent(trade.ret, 2, true)}${trade.r === null ? '' : `, ${number(trade.r, 2, true)} R`}`, tone(trade.pnl)),
    field('By', trade.reason || '\u2013'),
  );
}

// ---- controls ----

for (const [id, action] of [
  ['zoom-in', () => priceChart.zoom(0.5)],
  ['zoom-out', () => priceChart.zoom(2)],
  ['zoom-fit', () => priceChart.fit()],
  ['previous', () => priceChart.step(-1)],
  ['next', () => priceChart.step(1)],
]) byId(id).addEventListener('click', () => priceChart.bars && action());

byId('log').addEventListener('click', () => {
  if (!priceChart.bars) return;
  priceChart.log = !priceChart.log;
  byId('log').setAttribute('aria-pressed', String(priceChart.log));
  priceChart.redraw();
});
byId('curve-log').addEventListener('click', () => {
  curveChart.log = !curveChart.log;
  byId('curve-log').setAttribute('aria-pressed', String(curveChart.log));
  curveChart.chart.redraw();
});
for (const button of document.querySelectorAll('[data-unit]')) button.addEventListener('click', () => setDistributionUnit(button.dataset.unit));

// ---- start ----

byId('title').textContent = report.title;
byId('subtitle').textContent = report.subtitle;
byId('made').textContent = [`Tidemill ${report.version}`.trim(), report.generated].filter(Boolean).join(' \u00b7 ');
byId('scope-box').hidden = !several;
if (several) {
  byId('scope').replaceChildren(
    h('option', { value: '-1' }, `All ${report.series.length} symbols`),
    ...report.series.map((series, i) => h('option', { value: i }, series.symbol)),
  );
  byId('scope').addEventListener('change', (event) => setScope(Number(event.target.value)));
}
showSymbols((i) => {
  setScope(i);
  scrollTo({ top: 0 });
});
showMetrics();
showSetup();
setScope(state.scope);
document.documentElement.classList.add('ready');
