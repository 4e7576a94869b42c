// Light or dark, set before anything is drawn; "auto" follows the system. The event `themechange` says that colours have changed.
(() => {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  let wish = null;
  try {
    wish = localStorage.getItem('tidemill-theme');
  } catch {
    // Without storage every page begins with "auto".
  }
  const set = (theme) => {
    root.dataset.theme = theme;
    dispatchEvent(new Event('themechange'));
  };
  const apply = () => {
    root.dataset.wish = wish ?? 'auto';
    set(wish === 'dark' || (root.dataset.wish === 'auto' && system.matches) ? 'dark' : 'light');
  };
  window.tidemillTheme = (next) => {
    wish = next;
    try {
      localStorage.setItem('tidemill-theme', wish);
    } catch {
      // Kept for this page only.
    }
    apply();
  };
  system.addEventListener('change', apply);
  // Paper is white.
  addEventListener('beforeprint', () => set('light'));
  addEventListener('afterprint', apply);
  apply();
})();
