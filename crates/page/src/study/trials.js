// The table of the best trials: sortable, and a way to choose one by keyboard.

class TrialTable {
  constructor(table, more, onChoose) {
    this.table = table;
    this.more = more;
    this.onChoose = onChoose;
    this.shown = Math.max(1, Math.min(study.n_listed || 10, study.n_best));
    this.order = [...Array(study.n_best).keys()];
    this.sort = null;
    this.columns = [
      { name: 'Trial', value: (i) => study.trials[i], text: (i) => number(study.trials[i], 0) },
      ...study.objectives.map((name, at) => ({ name, value: (i) => study.scores[at][i], text: (i) => short(study.scores[at][i]) })),
      ...study.metrics.map((name, at) => ({
        name,
        value: (i) => Number(study.metric_texts[i][at]),
        text: (i) => study.metric_texts[i][at].replace(/^-(?=[\d.])/, MINUS),
      })),
      ...axisOrder.map((at) => ({
        name: study.axes[at].name,
        value: (i) => study.values[at][i] ?? -Infinity,
        text: (i) => (study.values[at][i] === null ? '\u00b7' : valueText(study.axes[at], study.values[at][i])),
      })),
    ];
    more.addEventListener('click', () => {
      this.shown = Math.min(study.n_best, this.shown * 3);
      this.show();
    });
  }

  show() {
    const head = this.columns.map((column, at) => {
      const sorted = this.sort?.at === at;
      const arrow = h('span', { class: 'arrow', 'aria-hidden': 'true' }, sorted ? (this.sort.down ? '\u2193' : '\u2191') : '');
      return h('th', { scope: 'col', 'aria-sort': sorted ? (this.sort.down ? 'descending' : 'ascending') : null },
        h('button', { type: 'button', title: column.name, click: () => this.sortBy(at) }, column.name.length > 28 ? column.name.slice(0, 27) + '\u2026' : column.name), arrow);
    });
    const rows = this.order.slice(0, this.shown).map((i) => h('tr', {
      tabindex: '0',
      class: i === state.chosen ? 'chosen' : null,
      'aria-selected': String(i === state.chosen),
      click: () => this.onChoose(i),
      keydown: (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        this.onChoose(i);
      },
    }, ...this.columns.map((column) => h('td', {}, column.text(i)))));
    this.table.replaceChildren(h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows));
    this.rows = new Map(this.order.slice(0, this.shown).map((i, at) => [i, rows[at]]));
    this.more.hidden = this.shown >= study.n_best;
    this.more.textContent = `Show more of the ${number(study.n_best, 0)} trials`;
  }

  sortBy(at) {
    const down = this.sort?.at === at ? !this.sort.down : true;
    this.sort = { at, down };
    const value = this.columns[at].value;
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return (down ? -1 : 1) * (x < y ? -1 : x > y ? 1 : 0) || a - b;
    };
    this.order.sort(order);
    this.show();
  }

  mark() {
    this.rows?.forEach((row, i) => {
      row.classList.toggle('chosen', i === state.chosen);
      row.setAttribute('aria-selected', String(i === state.chosen));
    });
  }
}
