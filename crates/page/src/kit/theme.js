// Light and dark colours, for every page; `redrawAll` and `charts` are the page's own.

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').setAttribute('aria-label', theme === 'dark' ? 'Use light colours' : 'Use dark colours');
  redrawAll();
}

const systemDark = matchMedia('(prefers-color-scheme: dark)');
let themeChosen = false;
systemDark.addEventListener('change', () => themeChosen || setTheme(systemDark.matches ? 'dark' : 'light'));
byId('theme').addEventListener('click', () => {
  themeChosen = true;
  setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
});

// Paper is white: print in light colours, redrawn at once because the print dialogue does not wait for a frame.
let themeBeforePrint = null;
addEventListener('beforeprint', () => {
  themeBeforePrint = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = 'light';
  charts.forEach((chart) => chart.paint());
});
addEventListener('afterprint', () => setTheme(themeBeforePrint ?? 'light'));
