(() => {
  // Charts. A container names where its figures come from, by data-figures; each chart in it names its lines, by
  // data-lines: "figure:label:colour;...". The colours are those of the style sheet.
  const colour = (name) => {
    const probe = document.createElement('span');
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const two = (s, large, unit, small, rest) => `${Math.floor(s / large)}${unit}${s % large < small ? '' : ` ${Math.floor(s % large / small)}${rest}`}`;
  const age = (s) => s < 60 ? `${s}s` : s < 3600 ? two(s, 60, 'm', 1, 's') : s < 86400 ? two(s, 3600, 'h', 60, 'm') : two(s, 86400, 'd', 3600, 'h');
  const duration = (s) => s == null ? '–' : age(Math.round(s));
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800]; // seconds between the ticks of a duration
  const figure = (n) => n == null ? '–' : n === 0 ? '0' : n < 100 && n % 1 ? n.toFixed(1) : Math.round(n).toLocaleString('en');
  const chart = (plot, figures) => {
    const lines = plot.dataset.lines.split(';').map((line) => line.split(':'));
    const show = plot.dataset.unit === 'duration' ? duration : figure;
    const text = colour('faint'), grid = colour('line');
    const clock = (t, seconds) => new Date(t * 1000).toISOString().slice(11, seconds ? 19 : 16); // UTC, as all times of the pages
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: '11px system-ui' };
    return new uPlot({
      width: plot.clientWidth, height: 118, pxAlign: true,
      cursor: { points: { size: 5 }, drag: { x: false, y: false }, sync: { key: 'charts' } },
      scales: { y: { range: (u, low, high) => [0, Math.max(high * 1.1, 1)] } },
      axes: [
        { ...axis, size: 24, space: 70, values: (u, all, i, space, step) => all.map((t) => clock(t, step < 60)) },
        { ...axis, size: (u, all) => 16 + 6.5 * Math.max(3, ...(all ?? []).map((text) => text.length)), space: 28, values: (u, all) => all.map(show), ...(show === duration ? { incrs: steps } : {}) },
      ],
      hooks: { setLegend: [(u) => { if (u.legend.idx == null && u.data[0]?.length) u.setLegend({ idx: u.data[0].length - 1 }); }] }, // the newest, unless somebody points at others
      series: [{ label: 'UTC', value: (u, t) => t == null ? '' : clock(t, true) }, ...lines.map(([, label, name]) => ({
        label, stroke: colour(name), width: 1.5, points: { show: false }, spanGaps: false, value: (u, n) => show(n),
      }))],
    }, [figures.at, ...lines.map(([key]) => figures[key])], plot);
  };
  const watch = (container) => {
    let figures = null, drawn = [];
    const plots = [...container.querySelectorAll('.plot')];
    for (const plot of plots) {
      plot.setAttribute('role', 'img');
      plot.setAttribute('aria-label', plot.dataset.label);
    }
    const draw = () => {
      for (const old of drawn) old.destroy();
      drawn = plots.map((plot) => chart(plot, figures));
    };
    const ask = async () => {
      if (!container.isConnected) return;
      if (!document.hidden) {
        const last = figures?.at.at(-1) ?? 0;
        try {
          const reply = await fetch(`${container.dataset.figures}?after=${last}`);
          const newer = reply.ok ? await reply.json() : null;
          if (newer?.at.length) {
            if (!figures) figures = newer;
            else for (const key of Object.keys(newer)) figures[key] = figures[key].concat(newer[key]).slice(-900);
            if (!drawn.length) draw();
            plots.forEach((plot, i) => {
              drawn[i].setData([figures.at, ...plot.dataset.lines.split(';').map((line) => figures[line.split(':')[0]])]);
              if (drawn[i].cursor.left < 0) drawn[i].setLegend({ idx: figures.at.length - 1 });
            });
            container.dataset.points = figures.at.length;
          }
        } catch { /* the page says that it is not connected */ }
      }
      setTimeout(ask, 2000);
    };
    document.addEventListener('theme', () => { if (figures) draw(); });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { if (figures) draw(); });
    let wide = 0;
    new ResizeObserver(() => {
      if (figures && container.clientWidth !== wide) { wide = container.clientWidth; plots.forEach((plot, i) => drawn[i]?.setSize({ width: plot.clientWidth, height: 118 })); }
    }).observe(container);
    ask();
  };
  document.addEventListener('DOMContentLoaded', () => document.querySelectorAll('[data-figures]').forEach(watch));
})();
