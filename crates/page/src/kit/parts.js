// The figures of a parameter set by part of the data, side by side.
import { h } from './dom.js';
import { MINUS, tone } from './format.js';

const SIGNED_FIGURES = new Set(['total_return', 'excess_return', 'alpha']);

/** A table of `{ columns, rows }`; null where there is nothing to show. */
export function partsTable({ columns, rows }) {
  if (!columns.length || !rows.length) return null;
  const text = (value) => value.replace(/^-(?=[\d.])/, MINUS);
  const head = (column) => h('th', { scope: 'col', class: column.key === 'whole' ? 'strong' : '' },
    column.label, h('small', {}, h('span', {}, column.from), ' \u2013 ', h('span', {}, column.to)));
  const cell = (row, column, at) => h('td', {
    'data-figure': row.key,
    'data-part': column.key,
    class: ['num', column.key === 'whole' ? 'strong' : '', SIGNED_FIGURES.has(row.key) ? tone(row.values[at]) : ''].join(' '),
  }, text(row.texts[at]));
  return h('table', { class: 'parts' },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }), ...columns.map(head))),
    h('tbody', {}, ...rows.map((row) => h('tr', {},
      h('th', { scope: 'row' }, row.label),
      ...columns.map((column, at) => cell(row, column, at))))));
}
