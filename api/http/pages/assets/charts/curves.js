/** Measured bandwidth of collectives by the size of their messages. */

import * as format from "../format.js";
import { evidence, table } from "../parts.js";
import { axis, chart, tip } from "./chart.js";

/** @param {Array<[string, object]>} curves names and curves as the API has them */
export function curveChart(curves) {
  const largest = Math.max(...curves.flatMap(([, curve]) => curve.bus_bytes_per_second));
  return chart({
    title: "Bus bandwidth of collectives within a host",
    caption: "By the bytes of a message, on a logarithmic scale.",
    legend: curves.map(([name], i) => [format.words(name), i]),
    height: (width) => (width < 500 ? 260 : 320),
    table: () => curveTable(curves),
    option: (palette, width) => ({
      grid: { left: 8, right: 24, top: 16, bottom: 28, containLabel: true },
      xAxis: axis(palette, {
        type: "log",
        logBase: 2,
        name: "message",
        nameLocation: "middle",
        nameGap: 28,
        splitLine: { show: false },
        splitNumber: Math.max(2, Math.floor(width / 120)),
        axisLabel: { formatter: (value) => format.bytes(value), hideOverlap: true },
      }),
      yAxis: axis(palette, {
        type: "value",
        interval: format.byteInterval(largest, 5),
        axisLabel: { formatter: (value) => `${format.bytes(value)}/s` },
      }),
      series: curves.map(([name, curve], i) => ({
        name: format.words(name),
        type: "line",
        symbol: "circle",
        symbolSize: 6,
        lineStyle: { color: palette.series[i], width: 2 },
        itemStyle: { color: palette.series[i] },
        data: curve.message_bytes.map((message, j) => [message, curve.bus_bytes_per_second[j]]),
      })),
      tooltip: {
        formatter: (point) =>
          tip(point.seriesName, [
            ["message", format.bytes(point.value[0])],
            ["bandwidth", `${format.bytes(point.value[1])}/s`],
          ]),
      },
    }),
  });
}

function curveTable(curves) {
  const points = curves.flatMap(([name, curve]) =>
    curve.message_bytes.map((message, i) => ({ name, curve, message, rate: curve.bus_bytes_per_second[i] })),
  );
  return table(
    "Bus bandwidth of collectives within a host",
    [
      { title: "Collective", head: true, cell: (point) => format.words(point.name) },
      { title: "Message", number: true, cell: (point) => format.bytes(point.message) },
      { title: "Bandwidth", number: true, cell: (point) => `${format.bytes(point.rate)}/s` },
      { title: "Ranks", number: true, cell: (point) => point.curve.num_ranks },
      { title: "Evidence", cell: (point) => evidence(point.curve.evidence) },
      { title: "Source", wide: true, cell: (point) => point.curve.source },
    ],
    points,
  );
}
