/** Points of a study in two figures, with its Pareto front. */

import * as format from "../format.js";
import { axis, chart, tip } from "./chart.js";

/** Names, units and spellings of figures; of those without one, three digits. */
const FIGURES = {
  samples_per_second: ["samples per second", format.count],
  step_seconds: ["step", format.seconds],
  requests_per_second: ["requests per second", format.count],
  fullest_rank_fraction: ["fullest rank", format.wholeShare],
  num_hosts: ["hosts", format.count],
  num_ranks: ["ranks", format.count],
  global_batch_size: ["global batch", format.count],
  price_per_hour: ["price per hour", format.digits],
  price_per_billion_samples: ["price per billion samples", format.digits],
  watts: ["watts", format.count],
  joules_per_thousand_samples: ["joules per thousand samples", format.digits],
};
const GROUPS = [
  ["front", 0],
  ["undecided", 2],
  ["dominated", 7],
];

/** The name of a figure for people. */
export function figureName(name) {
  return FIGURES[name]?.[0] ?? format.words(name);
}

/** A figure as people write it. */
export function figureText(name, value) {
  if (value === null || value === undefined) return "";
  return (FIGURES[name]?.[1] ?? format.digits)(value);
}

/**
 * @param {string[]} names figures of the front: the second is across, the first is upward
 * @param {object[]} points with figures
 * @param {Map<string, string>} standings of points by their keys
 * @param {() => Node} table the same numbers
 * @param {(point: object) => void} chosen opens the plan of a point
 */
export function frontChart(names, points, standings, table, chosen) {
  const [up, across] = [names[0], names[1] ?? "num_hosts"];
  const spot = (point) => [point.figures[across], point.figures[up]];
  const scale = (palette, name, options) =>
    axis(palette, {
      type: "value",
      scale: true,
      name: figureName(name),
      axisLabel: { formatter: (value) => figureText(name, value), hideOverlap: true },
      ...options,
    });
  return chart({
    title: `${format.sentence(figureName(up)).slice(0, -1)} and ${figureName(across)} of every point`,
    caption: "Each point has a plan. Points of the front are joined: no other point is at least as good in every figure.",
    legend: GROUPS.filter(([name]) => points.some((point) => standings.get(point.key) === name)),
    height: (width) => (width < 500 ? 300 : 380),
    table,
    clicked: ({ data }) => data?.point && chosen(data.point),
    option: (palette, width) => ({
      grid: { left: 8, right: 24, top: 32, bottom: 28, containLabel: true },
      xAxis: scale(palette, across, {
        nameLocation: "middle",
        nameGap: 28,
        splitNumber: Math.max(2, Math.floor(width / 140)),
      }),
      yAxis: scale(palette, up, { nameTextStyle: { color: palette.faint, align: "left" } }),
      series: [
        {
          type: "line",
          silent: true,
          symbol: "none",
          lineStyle: { color: palette.series[0], width: 1 },
          data: points
            .filter((point) => standings.get(point.key) === "front")
            .map(spot)
            .sort(([a], [b]) => a - b),
        },
        ...GROUPS.map(([name, colour]) => ({
          name,
          type: "scatter",
          symbolSize: 12,
          itemStyle: { color: palette.series[colour], opacity: name === "front" ? 1 : 0.6 },
          data: points
            .filter((point) => standings.get(point.key) === name)
            .map((point) => ({ value: spot(point), point })),
        })),
      ],
      tooltip: {
        formatter: ({ data }) =>
          data?.point
            ? tip(data.point.key, [
                ...names.map((name) => [figureName(name), figureText(name, data.point.figures[name])]),
                ["gap", format.gap(data.point.relative_gap)],
              ])
            : "",
      },
    }),
  });
}
