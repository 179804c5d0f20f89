/** The phases of two plans side by side. */

import * as format from "../format.js";
import { table } from "../parts.js";
import { axis, chart, tip } from "./chart.js";

/** @param {Array<[string, {a: number, b: number, relative_change: number | null}]>} phases */
export function diffChart(phases) {
  const names = phases.map(([name]) => format.words(name));
  return chart({
    title: "Seconds of every phase in A and B",
    caption: "Of the slowest rank of each phase.",
    legend: [
      ["A", 7],
      ["B", 0],
    ],
    height: () => 50 + 44 * phases.length,
    table: () => phaseTable(phases),
    option: (palette, width) => ({
      grid: { left: 8, right: 24, top: 8, bottom: 8, containLabel: true },
      xAxis: axis(palette, {
        type: "value",
        splitNumber: Math.max(2, Math.floor(width / 160)),
        axisLabel: { formatter: (value) => format.seconds(value), hideOverlap: true },
      }),
      yAxis: axis(palette, { type: "category", data: names, inverse: true, splitLine: { show: false } }),
      series: [
        ["A", "a", 7],
        ["B", "b", 0],
      ].map(([name, key, colour]) => ({
        name,
        type: "bar",
        barGap: "10%",
        barCategoryGap: "35%",
        itemStyle: { color: palette.series[colour] },
        data: phases.map(([, pair]) => pair[key]),
      })),
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: (shown) => {
          const pair = phases[shown[0].dataIndex][1];
          return tip(names[shown[0].dataIndex], [
            ["A", format.seconds(pair.a)],
            ["B", format.seconds(pair.b)],
            ["change", format.change(pair)],
          ]);
        },
      },
    }),
  }).element;
}

function phaseTable(phases) {
  return table(
    "Seconds of every phase in A and B",
    [
      { title: "Phase", head: true, cell: ([name]) => format.words(name) },
      { title: "A", number: true, cell: ([, pair]) => format.seconds(pair.a) },
      { title: "B", number: true, cell: ([, pair]) => format.seconds(pair.b) },
    ],
    phases,
  );
}
