// What the pages do beside htmx: say whether the page is live.
(() => {
  const connection = () => document.getElementById('connection');
  let lost = 0; // when the stream was lost
  const say = (state, text) => {
    const c = connection();
    if (!c || c.textContent === text) return;
    c.className = 'connection ' + state;
    c.textContent = text;
  };
  document.addEventListener('htmx:sse:after:connection', () => { lost = 0; say('live', 'live'); });
  document.addEventListener('htmx:sse:after:message', () => { lost = 0; say('live', 'live'); });
  document.addEventListener('htmx:sse:error', (e) => {
    if (e.detail.status === 401) { location.reload(); return; } // the session has ended
    lost ||= Date.now();
    say('lost', 'not connected: the figures are old; trying again');
  });
  document.addEventListener('htmx:response:error', (e) => {
    if (e.detail.ctx?.response?.status === 401) location.reload();
  });

  // Of a form that has a policy twice, as text and as controls, that counts which was changed last.
  document.addEventListener('input', (e) => {
    const by = e.target.closest('[data-by]');
    if (by) e.target.form.elements.namedItem('by').value = by.dataset.by;
    const texts = e.target.dataset.texts?.split('|');
    if (!texts) return;
    const text = texts[e.target.value];
    e.target.setAttribute('aria-valuetext', text);
    document.querySelector(`output[for="${e.target.id}"]`).value = text;
  });
  // The address is that of what is shown, to be kept and sent to others.
  document.addEventListener('htmx:after:swap', () => {
    const link = document.querySelector('[data-link]');
    if (link) history.replaceState(history.state, '', link.getAttribute('href'));
  });
})();
