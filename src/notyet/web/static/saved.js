// What a saved page does: it filters its stops, by the form and by the address after "#".
"use strict";

const filters = document.getElementById("filters");
const stops = [...document.querySelectorAll(".stop")];
const texts = new Map(); // each is collected when it is needed first

function has(stop, text) {
  if (!texts.has(stop)) texts.set(stop, stop.textContent.toLowerCase());
  return texts.get(stop).includes(text);
}

function filter() {
  const { outcome, gate, text } = Object.fromEntries(new FormData(filters));
  const words = text.trim().toLowerCase();
  let shown = 0;
  for (const stop of stops) {
    const fits = (!outcome || stop.dataset.outcome === outcome)
      && (!gate || stop.dataset.gates.split("\n").includes(gate))
      && (!words || has(stop, words));
    stop.hidden = !fits;
    shown += fits;
  }
  document.getElementById("shown").textContent = `${shown} of ${stops.length} shown`;
}

// "#stop-41" opens a stop, "#gate=tests" shows those of a gate.
function follow() {
  const place = location.hash.slice(1);
  const stop = stops.find((one) => one.id === place);
  if (stop) {
    stop.open = true;
    stop.scrollIntoView();
  } else if (place.includes("=")) {
    for (const [name, value] of new URLSearchParams(place)) {
      if (name in filters.elements) filters.elements[name].value = value;
    }
    filter();
    filters.scrollIntoView();
  }
}

if (stops.length > 1) {
  for (const outcome of new Set(stops.map((stop) => stop.dataset.outcome))) {
    filters.elements.outcome.add(new Option(outcome, outcome));
  }
  filters.hidden = false;
  filters.addEventListener("input", filter);
  filters.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", follow);
  filter();
  follow();
}
