// Sets light or dark before anything is drawn. "auto" follows the system.
(() => {
  const stored = () => {
    try {
      return localStorage.getItem("tidemill-theme");
    } catch {
      return null;
    }
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const wish = stored() ?? "auto";
    const isDark = wish === "dark" || (wish === "auto" && system.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    document.documentElement.dataset.wish = wish;
    dispatchEvent(new Event("themechange"));
  };
  system.addEventListener("change", apply);
  window.tidemillTheme = (wish) => {
    try {
      localStorage.setItem("tidemill-theme", wish);
    } catch {
      // Kept for this page only.
    }
    apply();
  };
  apply();
})();
