// What was run: all metrics, parameters, execution assumptions, notes and the strategy's source.

function showMetrics() {
  setShown('metrics', report.metrics.length > 0);
  const value = (text) => (text === null || text === undefined || text === '' ? '\u2013' : text.replace(/^-(?=[\d.])/, MINUS));
  const columns = report.segments.length ? report.segments : null;
  byId('metric-table').replaceChildren(
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Metric'), ...(columns ? columns.map((name) => h('th', { scope: 'col' }, name)) : [h('th', { scope: 'col' }, 'Whole period')]))),
    h('tbody', {}, ...report.metrics.map((row) => h('tr', {},
      h('th', { scope: 'row', title: row.key }, row.label),
      ...(columns ?? ['']).map((name, i) => h('td', { class: name === 'whole period' || !columns ? 'num strong' : 'num', 'data-figure': row.key, 'data-column': name }, columns ? value(row.segments[i]) : value(row.text)))))),
  );
  byId('metric-table').classList.toggle('columns', report.segments.length === 0);
}

function showSetup() {
  const list = (id, pairs) => {
    byId(id + '-box').hidden = pairs.length === 0;
    byId(id).replaceChildren(...pairs.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
  };
  list('parameters', report.parameters);
  list('execution', report.execution);
  byId('notes-box').hidden = report.notes.length === 0;
  byId('notes').replaceChildren(...report.notes.map((note) => h('li', {}, note)));
  byId('source-box').hidden = report.strategy.trim() === '';
  byId('source').replaceChildren(...highlight(report.strategy.trimEnd()));
  setShown('setup', report.parameters.length + report.execution.length + report.notes.length > 0 || report.strategy.trim() !== '');
}

const TOML_TOKENS = /(#[^\n]*)|("""[\s\S]*?(?:"""|$)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?)|(^\s*\[[^\n#]*\])|(^\s*[\w.-]+(?=\s*=))|(\b(?:true|false)\b|[-+]?\b\d[\d_.eE]*\b)/gm;
const TOML_CLASSES = ['comment', 'string', 'table', 'name', 'literal'];

/** Strategy text as nodes with light colouring; the text itself is unchanged. */
function highlight(text) {
  const nodes = [];
  let at = 0;
  for (const match of text.matchAll(TOML_TOKENS)) {
    nodes.push(text.slice(at, match.index));
    const kind = match.slice(1).findIndex((part) => part !== undefined);
    nodes.push(h('span', { class: 'toml-' + TOML_CLASSES[kind] }, match[0]));
    at = match.index + match[0].length;
  }
  nodes.push(text.slice(at));
  return nodes;
}
