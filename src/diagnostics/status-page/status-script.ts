/**
 * The script of the status page: it puts what the stream of events brings into the page. Elements that stay keep their focus,
 * and nothing changes while text is selected, the page is hidden or the reader has paused it.
 */
export const statusScript = `'use strict';
(() => {
  const announcement = document.getElementById('announcement');
  const asOf = document.getElementById('as-of');
  const button = document.getElementById('pause');
  const announceEveryMs = 20000;
  const announceNumbersEveryMs = 120000;
  let source;
  let retry;
  let held = new Map();
  let paused = false;
  let headline;
  let announcedAtMs = Date.now() - announceEveryMs;

  const keyOf = (node) => (node.nodeName === 'TR' && node.cells[0] ? node.cells[0].textContent : undefined);

  /** Makes one element like another, child by child; rows of tables are known by their first cell. */
  function patch(old, fresh) {
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
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

  function open() {
    if (source || document.hidden || paused) return;
    clearTimeout(retry);
    source = new EventSource('status/live' + location.search);
    source.onmessage = ({ data }) => {
      const { time, text, parts } = JSON.parse(data);
      for (const [id, html] of Object.entries(parts)) held.set(id, html);
      state('Live, ' + time.slice(11, 19) + ' UTC');
      show();
      announce(text);
    };
    source.onerror = () => {
      const given = source.readyState === EventSource.CLOSED;
      state(given ? 'Not live: too many readers, or the process has ended' : 'Connection lost, trying again');
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

  button.hidden = false;
  document.getElementById('reload').hidden = true;
  button.addEventListener('click', () => {
    paused = !paused;
    button.textContent = paused ? 'Resume' : 'Pause';
    if (paused) {
      close();
      state('Paused');
    } else open();
  });
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  document.addEventListener('selectionchange', () => held.size > 0 && show());
  addEventListener('pagehide', close);
  addEventListener('pageshow', open);
  open();
})();
`;
