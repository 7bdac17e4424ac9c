// The time line over all events: bars by level, and a brush over them.

import uPlot from "uplot";
import { $, element, number } from "./dom.js";

// What the bars show, the worst at the bottom: the name, the colour of the report, and the levels of Windows.
const LEVELS = [["critical", 5, [1]], ["error", 4, [2]], ["warning", 3, [3]], ["information", 2, [4, 0, null]], ["verbose", 1, [5]]];
const BARS = 240;
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const UNITS = [[SECOND, "second"], [10 * SECOND, "10 seconds"], [MINUTE, "minute"], [5 * MINUTE, "5 minutes"], [15 * MINUTE, "15 minutes"],
  [HOUR, "hour"], [6 * HOUR, "6 hours"], [DAY, "day"], [7 * DAY, "week"], [28 * DAY, "4 weeks"], [364 * DAY, "52 weeks"]];

/** A time in milliseconds as SQL has it. */
export const timeText = (ms) => new Date(ms).toISOString().replace("T", " ").replace(/(:00)?\.000Z$|Z$/, "");

/** The time line #timeline. `narrow(range)` is called with what the brush chose: `[from, to)` in milliseconds, or null for all times. */
export function makeTimeline(engine, narrow) {
  const box = $("timeline");
  let chart = null, starts = [], sums = [], width = SECOND, whole = null, cursor = 0, anchor = null;
  const colour = (level) => getComputedStyle(box).getPropertyValue(`--level${level}`);

  /** Counts the events of a range and draws them. */
  async function draw(range) {
    const [from, to] = range;
    const [step, unit] = UNITS.find(([ms]) => (to - from) / ms <= BARS) ?? UNITS.at(-1);
    const where = `time_created >= '${timeText(from)}' AND time_created < '${timeText(to)}'`;
    const found = await engine.all(`SELECT (epoch_ms(time_created::TIMESTAMP) // ${step})::DOUBLE AS at, level::INTEGER AS level, count(*)::DOUBLE AS events
      FROM events WHERE ${where} GROUP BY ALL`);
    const first = Math.floor(from / step), size = Math.min(Math.floor((to - 1) / step) - first + 1, 10 * BARS);
    width = step;
    starts = Array.from({ length: size }, (_, i) => (first + i) * step);
    sums = LEVELS.map(() => new Float64Array(size));
    for (const { at, level, events } of found) {
      const kind = LEVELS.findIndex(([, , levels]) => levels.includes(level));
      sums[kind < 0 ? 3 : kind][at - first] += Number(events);
    }
    cursor = 0;
    anchor = null;
    $("time").hidden = false;
    $("time-at").textContent = "";
    plot();
    $("time-unit").textContent = `per ${unit}, UTC`;
    $("time-all").hidden = range === whole;
    $("time-levels").replaceChildren(...LEVELS.flatMap(([name, level], i) => {
      const sum = sums[i].reduce((a, b) => a + b, 0);
      return sum ? [element("span", `${name} ${number(sum)}`, { className: `level level${level}` }), " "] : [];
    }));
  }

  function plot() {
    chart?.destroy();
    // Each series is a sum with those below it. The highest is drawn first.
    const stacked = [];
    for (const sum of sums) stacked.unshift(sum.map((value, i) => value + (stacked[0]?.[i] ?? 0)));
    const axis = { stroke: () => getComputedStyle(box).color, grid: { show: false }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    chart = new uPlot({
      width: box.clientWidth || 600, height: 150, legend: { show: false }, padding: [8, 36, 0, 0],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { range: () => [starts[0] / 1000, (starts.at(-1) + width) / 1000] }, y: { range: (_, min, max) => [0, Math.max(1, max)] } },
      axes: [{ ...axis, space: 90, size: (_, texts) => (texts?.some((text) => text.includes("\n")) ? 44 : 28), values: (_, at, __, ___, step) => at.map((seconds, i) => {
        const [day, time] = new Date(seconds * 1000).toISOString().split("T");
        return step >= 86400 ? day : time.slice(0, step < 60 ? 8 : 5) + (i && !time.startsWith("00:00:00") ? "" : `\n${day}`);
      }) }, { ...axis, size: 60, values: (_, values) => values.map((value) => (Number.isInteger(value) ? number(value) : "")) }],
      series: [{}, ...LEVELS.toReversed().map(([, level]) => ({ fill: () => colour(level), width: 0, points: { show: false },
        paths: uPlot.paths.bars({ size: [.9, 60], align: 1 }) }))],
      hooks: { setSelect: [({ select }) => select.width > 2 && brushed(select.left, select.left + select.width)],
        setCursor: [({ cursor: { left } }) => left >= 0 && tell(Math.floor((chart.posToVal(left, "x") * 1000 - starts[0]) / width))] },
    }, [starts.map((ms) => ms / 1000), ...stacked], box);
  }
  function tell(i) {
    if (!(i >= 0 && i < starts.length)) return;
    const parts = LEVELS.flatMap(([name], kind) => (sums[kind][i] ? [`${name} ${number(sums[kind][i])}`] : []));
    $("time-at").textContent = `${timeText(starts[i])}: ${parts.join(", ") || "no events"}`;
  }
  function brushed(left, right) {
    const [from, to] = [left, right].map((at) => (chart.posToVal(at, "x") * 1000 - starts[0]) / width);
    choose(Math.max(0, Math.floor(from)), Math.min(starts.length - 1, Math.ceil(to) - 1));
  }
  function choose(first, last) {
    const range = [starts[first], starts[last] + width];
    narrow(range);
    return draw(range);
  }
  function all() {
    if ($("time-all").hidden) return;
    narrow(null);
    draw(whole);
  }
  const mark = () => {
    const [from, to] = [Math.min(anchor ?? cursor, cursor), Math.max(anchor ?? cursor, cursor) + 1];
    const [left, right] = [from, to].map((i) => chart.valToPos((starts[0] + i * width) / 1000, "x"));
    chart.setSelect({ left, top: 0, width: right - left, height: chart.over.clientHeight }, false);
    tell(cursor);
  };

  box.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: cursor - 1, ArrowRight: cursor + 1, Home: 0, End: starts.length - 1 }[event.key];
    if (!chart) return;
    if (to !== undefined) {
      anchor = event.shiftKey ? anchor ?? cursor : null;
      cursor = Math.max(0, Math.min(starts.length - 1, to));
      mark();
    } else if (event.key === "Enter") choose(Math.min(anchor ?? cursor, cursor), Math.max(anchor ?? cursor, cursor));
    else if (event.key === "Escape") all();
    else return;
    event.preventDefault();
  });
  $("time-all").onclick = all;
  new ResizeObserver(() => chart && box.clientWidth && chart.setSize({ width: box.clientWidth, height: 150 })).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart?.redraw());

  return {
    /** Draws the events from the first to the last time in a table with the columns `first` and `last`. */
    async show(times) {
      $("time").hidden = true;
      const [{ first, last }] = await engine.all(`SELECT epoch_ms(min(first)::TIMESTAMP)::DOUBLE AS first, epoch_ms(max(last)::TIMESTAMP)::DOUBLE AS last FROM ${times}`);
      if (first === null) return;
      $("time").hidden = false;
      whole = [first, last + 1];
      await draw(whole);
    },
  };
}
