// The list of trades: sorted, filtered, shown a page at a time; a click brings the trade into the chart.

const PAGE_ROWS = 25;

class TradeList {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.order = { key: 'number', falling: false };
    this.filter = { side: '', reason: '', result: '' };
    this.shown = PAGE_ROWS;
    for (const [id, key] of [['filter-side', 'side'], ['filter-reason', 'reason'], ['filter-result', 'result']]) {
      byId(id).addEventListener('change', (event) => {
        this.filter[key] = event.target.value;
        this.shown = PAGE_ROWS;
        this.fill();
      });
    }
    byId('more').addEventListener('click', () => {
      this.shown += PAGE_ROWS * 4;
      this.fill();
    });
    byId('save-csv').addEventListener('click', () => this.save());
  }

  show(trades, withSymbol, intraday) {
    Object.assign(this, { trades, withSymbol, intraday, shown: PAGE_ROWS });
    setShown('trades', allTrades.length > 0);
    const reasons = [...new Set(trades.map((trade) => trade.reason))].sort();
    if (!reasons.includes(this.filter.reason)) this.filter.reason = '';
    byId('filter-reason').replaceChildren(
      h('option', { value: '' }, 'All exits'),
      ...reasons.map((reason) => h('option', { value: reason, selected: reason === this.filter.reason }, reason || '(none)')),
    );
    byId('filter-reason').disabled = reasons.length < 2;
    byId('filter-side').disabled = new Set(trades.map((trade) => trade.side)).size < 2;
    this.fill();
  }

  visible() {
    const { side, reason, result } = this.filter;
    const sideUsed = side && !byId('filter-side').disabled;
    const rows = this.trades.filter((trade) =>
      (!sideUsed || trade.side === Number(side)) &&
      (!reason || trade.reason === reason) &&
      (!result || (result === 'won') === trade.pnl > 0));
    sortRows(rows, this.order);
    return rows;
  }

  columns() {
    const price = (value, trade) => number(value, Math.min(8, report.series[trade.series].decimals));
    return [
      { key: 'number', label: '#', text: (t) => number(t.number, 0), optional: true },
      ...(this.withSymbol ? [{ key: 'symbol', label: 'Symbol', text: (t) => t.symbol, name: true }] : []),
      { key: 'side', label: 'Side', text: (t) => (t.side > 0 ? 'Long' : 'Short'), tint: (t) => (t.side > 0 ? 'long' : 'short'), name: true },
      { key: 'entry_ms', label: 'Entry', text: (t) => date(t.entry_ms, this.intraday) },
      { key: 'exit_ms', label: 'Exit', text: (t) => date(t.exit_ms, this.intraday), optional: true },
      { key: 'bars', label: 'Bars', text: (t) => number(t.bars, 0), optional: true },
      { key: 'entry', label: 'Entry price', text: (t) => price(t.entry, t), optional: true },
      { key: 'exit', label: 'Exit price', text: (t) => price(t.exit, t), optional: true },
      { key: 'ret', label: 'Return', text: (t) => percent(t.ret, 2, true), tint: (t) => tone(t.pnl) },
      { key: 'r', label: 'R', text: (t) => number(t.r, 2, true), tint: (t) => tone(t.pnl) },
      { key: 'pnl', label: 'P&L per unit', text: (t) => number(t.pnl, Math.min(8, report.series[t.series].decimals), true), optional: true },
      { key: 'adverse', label: 'Worst', text: (t) => percent(t.adverse, 2, true), optional: true },
      { key: 'favourable', label: 'Best', text: (t) => percent(t.favourable, 2, true), optional: true },
      { key: 'reason', label: 'Exit by', text: (t) => t.reason, name: true },
    ];
  }

  fill() {
    const rows = this.visible();
    const columns = this.columns();
    const page = rows.slice(0, this.shown);
    byId('trade-table').replaceChildren(
      h('thead', {}, h('tr', {}, ...columns.map((column) => sortHeader(column.key, column.label, this.order, () => this.fill(), column.optional)))),
      h('tbody', {}, ...page.map((trade) => this.row(trade, columns))),
    );
    byId('trade-count').textContent = rows.length === this.trades.length
      ? count(rows.length, 'trade')
      : `${number(rows.length, 0)} of ${count(this.trades.length, 'trade')}`;
    byId('more').hidden = rows.length <= this.shown;
    byId('more').textContent = `Show more (${number(rows.length - page.length, 0)} left)`;
    byId('no-trades').hidden = rows.length > 0;
    this.mark(this.marked);
  }

  row(trade, columns) {
    const choose = () => this.onChoose(trade);
    return h('tr', { tabindex: 0, 'data-trade': trade.number, click: choose, keydown: onEnter(choose) },
      ...columns.map((column) => h('td', { class: [column.name ? 'name' : 'num', column.optional ? 'wide-only' : '', column.tint ? column.tint(trade) : ''].join(' ') }, column.text(trade))));
  }

  /** Highlights the row of the chosen trade. */
  mark(trade) {
    this.marked = trade;
    for (const row of byId('trade-table').querySelectorAll('tbody tr')) {
      row.classList.toggle('chosen', trade !== null && trade !== undefined && row.dataset.trade === String(trade.number));
    }
  }

  save() {
    const names = ['symbol', 'side', 'signal', 'entry_idx', 'exit_idx', 'entry_ms', 'exit_ms', 'entry', 'exit', 'stop', 'target', 'pnl', 'ret', 'r', 'bars', 'reason'];
    const quote = (value) => (/[",\n]/.test(String(value ?? '')) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ''));
    const lines = [names.join(','), ...this.visible().map((trade) => names.map((name) => quote(trade[name])).join(','))];
    const link = h('a', { href: URL.createObjectURL(new Blob([lines.join('\n') + '\n'], { type: 'text/csv' })), download: 'trades.csv' });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}
