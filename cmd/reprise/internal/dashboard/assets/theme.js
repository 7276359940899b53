// Runs before the page is shown, so that it does not flash in the other theme.
(() => {
  const stored = () => { try { return localStorage.getItem('theme'); } catch { return null; } };
  const show = (theme) => { document.documentElement.dataset.theme = theme; };
  if (stored()) show(stored());
  document.addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    if (!button) return;
    button.hidden = false;
    button.addEventListener('click', () => {
      const dark = getComputedStyle(document.documentElement).colorScheme === 'dark'
        || !document.documentElement.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches;
      const theme = dark ? 'light' : 'dark';
      show(theme);
      try { localStorage.setItem('theme', theme); } catch { /* it lasts as long as the page */ }
      document.dispatchEvent(new Event('theme'));
    });
  });
})();
