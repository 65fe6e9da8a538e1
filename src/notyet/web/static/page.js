// What the page does by itself: it keeps times true, shows what happens, and says if it cannot.
"use strict";

// Times.

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"]];

function span(seconds) {
  for (const [size, unit] of UNITS) {
    if (seconds >= 1.5 * size) return `${Math.round(seconds / size)} ${unit}`;
  }
  return `${Math.round(seconds)} s`;
}

function tick(part) {
  for (const time of part.querySelectorAll("time[data-at]")) {
    const words = span(Math.max(0, Date.now() / 1000 - Number(time.dataset.at)));
    if (time.textContent !== words) time.textContent = words;
  }
}

setInterval(() => tick(document), 1000);

// The stream of events.

const ENDED = "notyet page has ended. Start it again with: notyet page";
const ANOTHER = "This tab is of a notyet page that has ended. Open the address that the new one printed.";
const LOST = "There is no connection to notyet page; this tab tries again until there is one.";
const PAUSE = 3000; // milliseconds

function connection(kind, words, trouble) {
  const place = document.getElementById("connection");
  place.className = kind;
  if (place.textContent !== words) place.textContent = words;
  const above = document.getElementById("offline");
  if (above.textContent === trouble) return;
  const said = document.createElement("p");
  said.textContent = trouble;
  above.replaceChildren(...(trouble ? [said] : []));
}

// The EventSource of htmx's extension, open only while its tab can be seen: a browser has six
// connections to a host, and the seventh tab would wait for ever.
class Stream extends EventTarget {
  constructor(url) {
    super();
    this.url = url;
    this.readyState = EventSource.CONNECTING;
    this.source = null;
    document.addEventListener("visibilitychange", () => this.look());
    this.look();
  }

  look() {
    if (this.readyState === EventSource.CLOSED) return;
    if (document.visibilityState === "hidden") this.drop();
    else if (this.source === null) this.connect();
  }

  connect() {
    const source = new EventSource(this.url);
    let isKnown = false; // another program may have got the port, and what it says is not shown
    source.addEventListener("hello", ({ data }) => {
      isKnown = data === document.body.dataset.site;
      if (isKnown) connection("live", "live", "");
      else this.end(ANOTHER);
    });
    source.addEventListener("changed", () => {
      if (isKnown) this.dispatchEvent(new Event("changed"));
    });
    source.addEventListener("ended", () => this.end(ENDED));
    source.addEventListener("error", () => {
      isKnown = false;
      this.lose(source);
    });
    this.source = source;
  }

  async lose(source) {
    connection("gone", "not live", LOST);
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again
    const answer = await fetch(this.url, { method: "HEAD" }).catch(() => null);
    if (this.source !== source) return;
    if (answer && !answer.ok) this.end(ANOTHER);
    else {
      setTimeout(() => {
        if (this.source === source) this.drop();
        this.look();
      }, PAUSE);
    }
  }

  drop() {
    this.source?.close();
    this.source = null;
  }

  end(words) {
    this.close();
    connection("gone", "ended", words);
  }

  close() {
    this.readyState = EventSource.CLOSED;
    this.drop();
  }
}

htmx.createEventSource = (url) => new Stream(url);

// New contents. Only what differs is changed, so that focus, selected and typed text, scrolling and
// opened parts stay.

function alike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName
    && (old.id || "") === (fresh.id || "");
}

function renew(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.data = fresh.data;
    return;
  }
  const isOpened = old.nodeName === "DETAILS"; // by a person, or not
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(isOpened && name === "open")) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value && !(isOpened && name === "open")) {
      old.setAttribute(name, value);
    }
  }
  // What is drawn into a chart, and typed into a text, is not in the new contents.
  if (old.dataset?.chart === undefined && old.nodeName !== "TEXTAREA") renewChildren(old, fresh);
}

function renewChildren(old, fresh) {
  const named = new Map([...old.children].filter((each) => each.id).map((each) => [each.id, each]));
  const kept = new Set([...fresh.children].map((each) => each.id));
  let at = old.firstChild;
  const forward = () => {
    while (at?.id && !kept.has(at.id)) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  };
  for (const node of [...fresh.childNodes]) {
    forward();
    const known = at && alike(at, node) ? at : named.get(node.id);
    if (!known || !alike(known, node)) old.insertBefore(node, at);
    else {
      if (known === at) at = at.nextSibling;
      else old.insertBefore(known, at);
      renew(known, node);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  const fresh = fragment.getElementById?.(target.id);
  if (!fresh || target.id === "main") return; // a whole screen, or only the inside of a part
  event.detail.shouldSwap = false;
  tick(fresh);
  renew(target, fresh);
  htmx.process(target);
});

// A notice is shown once: without its name, the address can be shared.

function forgetNotice() {
  const here = new URL(location.href);
  if (!here.searchParams.has("done")) return;
  here.searchParams.delete("done");
  history.replaceState(history.state, "", here);
}

forgetNotice();
