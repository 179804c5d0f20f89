/** The best plan and the bound over the time of a search. */

import * as format from "../format.js";
import { table } from "../parts.js";
import { axis, chart, tip } from "./chart.js";

const LEAST_SHARE = 0.001; // of a value, that the scale covers: less would make a proven plan look far from its bound

/** What is added to both ends of a scale that would cover too little. */
export function padding({ min, max }) {
  return Math.max(0, LEAST_SHARE * max - (max - min)) / 2;
}

/**
 * @param {Array<object>} events of a solve, in order; the chart reads it again at every `redraw`
 * @param {() => number | null} endSeconds when the search ended, or how long it has run; null where nobody knows
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
      const line = (name, of, colour, type) => ({
        name,
        type: "line",
        step: "end",
        symbol: "circle",
        symbolSize: 5,
        showSymbol: events.length < 40,
        lineStyle: { color: palette.series[colour], width: 2, type },
        itemStyle: { color: palette.series[colour] },
        data: [
          ...events.map((event) => [event.at_seconds, of(event)]),
          ...(events.length ? [[end, of(events.at(-1))]] : []),
        ],
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
          min: (shown) => (padding(shown) > 0 ? shown.min - padding(shown) : null),
          max: (shown) => (padding(shown) > 0 ? shown.max + padding(shown) : null),
          axisLabel: { formatter: (value) => format.secondsOnScale(value) },
        }),
        series: [
          line("best plan so far", (event) => event.incumbent_seconds, 0, "solid"),
          ...(hasBound() ? [line("bound", (event) => event.bound_seconds, 2, "dashed")] : []),
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
