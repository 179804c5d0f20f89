/** The best plan and the bound over the time of a search. */

import * as format from "../format.js";
import { table } from "../parts.js";
import { axis, chart, tip } from "./chart.js";

const LEAST_SHARE = 0.001; // of a value, that the scale covers: less would make a proven plan look far from its bound
const FEWEST_LINES = 4;

/**
 * The ends of a scale that would cover too little, and the interval of its lines, all of them round numbers; else null:
 * the library does well where there is something to see.
 */
export function wideScale({ min, max }) {
  const least = LEAST_SHARE * max;
  if (!(max - min < least)) return null;
  const decade = 10 ** Math.floor(Math.log10(least / FEWEST_LINES));
  const interval = decade * [1, 2, 5, 10].findLast((factor) => decade * factor * FEWEST_LINES <= least);
  const middle = (min + max) / 2;
  return {
    min: Math.floor((middle - least / 2) / interval) * interval,
    max: Math.ceil((middle + least / 2) / interval) * interval,
    interval,
  };
}

/** The corners of steps that hold each value until the next. */
function corners(points) {
  return points.flatMap(([x, y], i) => (i === 0 ? [[x, y]] : [[x, points[i - 1][1]], [x, y]]));
}

/**
 * @param {Array<object>} events of a solve, in order; the chart reads it again at every `redraw`
 * @param {() => number | null} endSeconds when the search ended, or how long it has run; null if it is not known
 */
export function gapChart(events, endSeconds) {
  const hasBound = () => events.some((event) => event.bound_seconds > 0);
  return chart({
    title: "Best plan and bound over the time of the search",
    caption:
      "The optimum lies between the lines; where they meet, the plan is proven best. The scale does not begin at zero.",
    legend: () => [["best plan so far", 0], ...(hasBound() ? [["bound: no plan is better", 2]] : [])],
    height: (width) => (width < 500 ? 240 : 300),
    table: () => eventTable(events),
    option: (palette, width) => {
      const end = Math.max(endSeconds() ?? 0, events.at(-1)?.at_seconds ?? 0);
      const points = (of) => [
        ...events.map((event) => [event.at_seconds, of(event)]),
        ...(events.length ? [[end, of(events.at(-1))]] : []),
      ];
      const best = points((event) => event.incumbent_seconds);
      const bound = hasBound() ? points((event) => event.bound_seconds) : [];
      const values = [...best, ...bound].map(([, seconds]) => seconds);
      const wide = wideScale({ min: Math.min(...values), max: Math.max(...values) });
      const dots = (name, data, colour) => ({
        name,
        type: "line",
        symbol: "circle",
        symbolSize: 5,
        showSymbol: events.length < 40,
        lineStyle: { opacity: 0 },
        itemStyle: { color: palette.series[colour] },
        data,
      });
      // Its own lines drop what is lower than two pixels, and slope where a step was.
      const steps = (data, colour, lineDash) => ({
        type: "custom",
        silent: true,
        tooltip: { show: false },
        data: data.slice(0, 1),
        renderItem: (_, api) => ({
          type: "polyline",
          shape: { points: corners(data).map((point) => api.coord(point)) },
          style: { fill: null, stroke: palette.series[colour], lineWidth: 2, lineDash },
        }),
      });
      return {
        grid: { left: 8, right: 24, top: 16, bottom: 28, containLabel: true },
        xAxis: axis(palette, {
          type: "value",
          min: 0,
          max: end || undefined,
          name: "since the search began",
          nameLocation: "middle",
          nameGap: 28,
          splitLine: { show: false },
          splitNumber: Math.max(2, Math.floor(width / 140)),
          axisLabel: { formatter: (value) => format.seconds(value), hideOverlap: true },
        }),
        yAxis: axis(palette, {
          type: "value",
          scale: true,
          ...wide,
          axisLabel: { formatter: (value) => format.secondsOnScale(value) },
        }),
        series: [
          dots("best plan so far", best, 0),
          ...(bound.length ? [dots("bound", bound, 2)] : []),
          steps(best, 0, "solid"),
          ...(bound.length ? [steps(bound, 2, "dashed")] : []),
        ],
        tooltip: {
          trigger: "axis",
          axisPointer: { type: "line" },
          formatter: (shown) => {
            const event = events[Math.min(shown[0].dataIndex, events.length - 1)];
            return tip(`after ${format.seconds(event.at_seconds)}`, [
              ["best plan", format.seconds(event.incumbent_seconds)],
              ["bound", format.bound(event.bound_seconds)],
              ["gap", format.gap(event.relative_gap)],
              ["found by", format.words(event.partitioner)],
            ]);
          },
        },
      };
    },
  });
}

function eventTable(events) {
  return table(
    "Best plan and bound over the time of the search",
    [
      { title: "After", head: true, cell: (event) => format.seconds(event.at_seconds) },
      { title: "Best plan", number: true, cell: (event) => format.seconds(event.incumbent_seconds) },
      { title: "Bound", number: true, cell: (event) => format.bound(event.bound_seconds) },
      { title: "Gap", number: true, cell: (event) => format.gap(event.relative_gap) },
      { title: "Found by", cell: (event) => format.words(event.partitioner) },
    ],
    events,
  );
}
