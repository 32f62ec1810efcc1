/**
 * The script of the status page: it puts what the stream of events brings into the page. Elements that stay keep their focus,
 * and nothing changes while text is selected, the page is hidden or the reader has paused it. What is older than 20 seconds is
 * shown as such, in the title of the tab, too, whatever the reason: a connection that hangs, a process that is gone, or a
 * computer that was asleep.
 */
export const statusScript = `'use strict';
(() => {
  const announcement = document.getElementById('announcement');
  const asOf = document.getElementById('as-of');
  const button = document.getElementById('pause');
  const announceEveryMs = 20000;
  const announceNumbersEveryMs = 120000;
  const staleMs = 20000;
  const hiddenEveryMs = 60000;
  const { title: baseTitle } = document.body.dataset;
  let lastTime = document.body.dataset.asOf;
  let lastAtMs = Date.now();
  let triedAtMs = Date.now();
  let why = '';
  let mark = document.title.slice(0, -baseTitle.length);
  let source;
  let retry;
  let held = new Map();
  let paused = false;
  let headline;
  let announcedAtMs = Date.now() - announceEveryMs;

  const keyOf = (node) => (node.nodeName === 'TR' && node.cells[0] ? node.id || node.cells[0].textContent : undefined);

  /** Makes one element like another, child by child; rows of tables are known by their id or first cell. What a reader has unfolded stays so. */
  function patch(old, fresh) {
    for (const { name } of [...old.attributes]) {
      if (name !== 'style' && name !== 'open' && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const rows = new Map();
    for (const child of old.children) {
      const key = keyOf(child);
      if (key !== undefined) rows.set(key, child);
    }
    // what is gone goes first: a row that is moved would lose its focus
    const staying = new Set([...fresh.children].map(keyOf));
    for (const [key, row] of rows) if (!staying.has(key)) row.remove();
    let at = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const key = keyOf(child);
      const known = key === undefined ? undefined : rows.get(key);
      if (known !== undefined) {
        rows.delete(key);
        if (known === at) at = at.nextSibling;
        else old.insertBefore(known, at);
        patch(known, child);
      } else if (key === undefined && at && at.nodeName === child.nodeName && keyOf(at) === undefined) {
        const next = at.nextSibling;
        if (at.nodeType !== Node.ELEMENT_NODE) {
          if (at.data !== child.data) at.data = child.data;
        } else patch(at, child);
        at = next;
      } else old.insertBefore(child, at);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  const isSelecting = () => {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed;
  };

  function show() {
    if (paused || isSelecting()) return;
    const parts = held;
    held = new Map();
    for (const [id, html] of parts) {
      const old = document.getElementById(id);
      if (!old) continue;
      const fresh = old.cloneNode(false);
      fresh.innerHTML = html;
      patch(old, fresh);
    }
  }

  /** Spoken when it differs, at most every 20 seconds; where only numbers do, every two minutes. */
  function announce(text) {
    if (headline === undefined) headline = text;
    if (text === headline) return;
    const isSameKind = withoutNumbers(text) === withoutNumbers(headline);
    if (Date.now() - announcedAtMs < (isSameKind ? announceNumbersEveryMs : announceEveryMs)) return;
    headline = text;
    announcedAtMs = Date.now();
    announcement.textContent = text;
  }

  const withoutNumbers = (text) => text.replace(/[\\d,]+/g, '');

  const state = (text) => {
    if (asOf.textContent !== text) asOf.textContent = text;
  };

  const timeText = () => lastTime.slice(11, 19) + ' UTC';
  const isStale = () => document.body.classList.contains('stale');

  function fresh(message) {
    lastTime = message.time;
    lastAtMs = Date.now();
    why = '';
    mark = message.mark === '' ? '' : message.mark + ' – ';
    document.body.classList.remove('stale');
    document.title = mark + baseTitle;
  }

  /** By the time of day, which goes on while the computer sleeps; timers do not. A clock that was set back counts as late, too. */
  function checkAge() {
    const ageMs = Date.now() - lastAtMs;
    if (document.hidden || (ageMs >= -1000 && ageMs < staleMs)) return;
    if (!isStale()) {
      document.body.classList.add('stale');
      document.title = '? no update – ' + baseTitle;
      if (!paused) announce('No update since ' + timeText());
    }
    if (!paused) state('No update since ' + timeText() + why);
    // a connection that hangs brings neither messages nor an error
    const sinceTryMs = Date.now() - triedAtMs;
    if (source && (sinceTryMs < -1000 || sinceTryMs >= staleMs)) {
      close();
      open();
    }
  }

  /** A tab that nobody looks at has no stream: others could not be let in. Its title says how things are once a minute. */
  async function lookForTitle() {
    if (!document.hidden || paused) return;
    try {
      const answer = await fetch('status/headline', { signal: AbortSignal.timeout(staleMs) });
      if (answer.ok && document.hidden && !paused) {
        // the page itself is as old as before: only its title is new
        const { mark: newMark } = await answer.json();
        document.title = (newMark === '' ? '' : newMark + ' – ') + baseTitle;
        return;
      }
    } catch {
      // as an answer that is no answer
    }
    if (document.hidden) document.title = '? no update – ' + baseTitle;
  }

  function open() {
    if (source || document.hidden || paused) return;
    clearTimeout(retry);
    triedAtMs = Date.now();
    source = new EventSource('status/live' + location.search);
    source.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      for (const [id, html] of Object.entries(message.parts)) held.set(id, html);
      fresh(message);
      show();
      state('Live, ' + timeText() + (held.size > 0 ? ', held while text is selected' : ''));
      announce(message.text);
    };
    source.onerror = () => {
      const given = source.readyState === EventSource.CLOSED;
      if (given) why = ': too many readers, or the process has ended';
      if (!isStale()) state(given ? 'Not live: too many readers, or the process has ended' : 'Connection lost, trying again');
      if (!given) return;
      close();
      retry = setTimeout(open, 15000);
    };
  }

  function close() {
    clearTimeout(retry);
    if (source) source.close();
    source = undefined;
  }

  /** What the bar below the pointer counts, and when; the unit again once the pointer has left. */
  function readChart({ target, clientX }) {
    const chart = target.closest?.('.hour svg');
    for (const svg of document.querySelectorAll('.hour svg')) {
      const note = svg.closest('figure').querySelector('figcaption small');
      const { unit, at, values } = svg.dataset;
      const box = svg.getBoundingClientRect();
      const minutesAgo = 59 - Math.floor(((clientX - box.left) / box.width) * 60);
      const all = values.split(',');
      const value = all[all.length - 1 - minutesAgo];
      const time = new Date(Number(at) - minutesAgo * 60000).toISOString().slice(11, 16) + ' UTC: ';
      const text = svg === chart && value ? time + value + ' ' + unit : unit;
      if (note.textContent !== text) note.textContent = text;
    }
  }

  document.addEventListener('pointermove', readChart);
  button.hidden = false;
  document.getElementById('reload').hidden = true;
  button.addEventListener('click', () => {
    paused = !paused;
    button.textContent = paused ? 'Resume' : 'Pause';
    if (paused) {
      close();
      state('Paused at ' + timeText());
    } else open();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) close();
    else {
      document.title = (isStale() ? '? no update – ' : mark) + baseTitle;
      open();
    }
    checkAge();
  });
  setInterval(checkAge, 1000);
  setInterval(lookForTitle, hiddenEveryMs);
  document.addEventListener('selectionchange', () => held.size > 0 && show());
  addEventListener('pagehide', close);
  addEventListener('pageshow', open);
  open();
})();
`;
