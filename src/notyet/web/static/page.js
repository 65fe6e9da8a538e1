// What the page does by itself: it keeps times true and says whether it is connected.
"use strict";

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"]];

function span(seconds) {
  for (const [size, unit] of UNITS) {
    if (seconds >= 1.5 * size) return `${Math.round(seconds / size)} ${unit}`;
  }
  return `${Math.round(seconds)} s`;
}

function tick() {
  for (const time of document.querySelectorAll("time[data-at]")) {
    const words = span(Math.max(0, Date.now() / 1000 - Number(time.dataset.at)));
    if (time.textContent !== words) time.textContent = words;
  }
}

function connection(kind, words) {
  const place = document.getElementById("connection");
  place.className = kind;
  if (place.textContent !== words) place.textContent = words;
}

// A notice is shown once: without its name, the address can be shared.
function forgetNotice() {
  const here = new URL(location.href);
  if (!here.searchParams.has("done")) return;
  here.searchParams.delete("done");
  history.replaceState(history.state, "", here);
}

forgetNotice();
setInterval(tick, 1000);
document.addEventListener("htmx:sseOpen", () => connection("live", "live"));
document.addEventListener("htmx:sseError", () =>
  connection("gone", "no connection: notyet page has ended, or is busy"));
