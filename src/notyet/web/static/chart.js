// Draws `data-chart` as stacked bars with uPlot, in the colours of the page.
"use strict";

const HEIGHT = 190;
const drawn = new WeakMap(); // by its place: a chart and the text that it shows

function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function stacked(series) {
  const below = series[0].counts.map(() => 0);
  return series.map(({ counts }) => counts.map((count, at) => (below[at] += count)));
}

// As people write times here: the time of day, for longer spans the day.
function written(seconds, isLong) {
  const at = new Date(seconds * 1000);
  return isLong ? at.toLocaleDateString([], { day: "numeric", month: "short" })
    : at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

function options(place, { starts, end, series }) {
  const axis = {
    stroke: colourOf("mute"), grid: { stroke: colourOf("line"), width: 1 },
    ticks: { stroke: colourOf("line"), width: 1 }, font: "12px system-ui, sans-serif",
  };
  const isLong = end - starts[0] > 2 * 86400;
  const values = (_, all) => all.map((at) => written(at, isLong));
  const day = (at) => (isLong ? `${written(at, true)} ` : "");
  const from = (_, at) => (at === null ? "" : `from ${day(at)}${written(at, false)}`);
  const bars = uPlot.paths.bars({ size: [0.85, 60], align: 1 });
  const drawnOver = series.map(({ name, colour, counts }) => ({
    label: name, stroke: colourOf(colour), fill: colourOf(colour), width: 0, paths: bars,
    points: { show: false }, value: (_, __, ___, at) => (at === null ? "" : `${counts[at]}`),
  }));
  return {
    width: place.clientWidth, height: HEIGHT, padding: [8, 8, 0, 0],
    scales: {
      x: { range: () => [starts[0], end] },
      y: { range: (_, __, most) => [0, 1.05 * Math.max(most, 1)] },
    },
    axes: [
      { ...axis, grid: { show: false }, values, size: 34 },
      { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5] },
    ],
    cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
    // The highest bar is drawn first, the others over it. uPlot calls a series without a label "Time".
    series: [{ label: " ", value: from }, ...drawnOver.reverse()],
  };
}

function draw(place) {
  const known = drawn.get(place);
  const text = place.dataset.chart;
  if (known?.text === text) return;
  known?.chart.destroy();
  const data = JSON.parse(text);
  const chart = new uPlot(options(place, data), [data.starts, ...stacked(data.series).reverse()], place);
  drawn.set(place, { chart, text });
}

function drawAll(again) {
  for (const place of document.querySelectorAll("[data-chart]")) {
    if (again && drawn.has(place)) drawn.get(place).text = "";
    draw(place);
  }
}

const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const known = drawn.get(target);
    if (known && known.chart.width !== target.clientWidth) {
      known.chart.setSize({ width: target.clientWidth, height: HEIGHT });
    }
  }
});

new MutationObserver(() => {
  drawAll(false);
  document.querySelectorAll("[data-chart]").forEach((place) => widths.observe(place));
}).observe(document.body, { subtree: true, childList: true, attributeFilter: ["data-chart"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(true));
drawAll(false);
document.querySelectorAll("[data-chart]").forEach((place) => widths.observe(place));
