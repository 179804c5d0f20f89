/** Stacked amounts of every phase of a step, on lying bars in the order of the step. */

import { axis, chart, tip } from "./chart.js";

const LABEL_ROOM = 44; // half a label, which stands in the middle below the end of the scale

/**
 * @param {object} stack
 * @param {string} stack.title
 * @param {string} stack.caption
 * @param {Array<{name: string}>} stack.phases in the order of a step
 * @param {Array<{name: string, colour: number, of: (phase: object) => number}>} stack.parts
 *   a colour below 0 is that of what is free
 * @param {(amount: number) => string} stack.format
 * @param {number} stack.full the end of the scale
 * @param {(end: number, parts: number) => number} stack.interval between the lines of the scale
 * @param {() => Node} stack.table
 */
export function phaseStack({ title, caption, phases, parts, format, full, interval, table }) {
  return chart({
    title,
    caption,
    table,
    legend: parts.map((part) => [part.name, part.colour]),
    height: () => 60 + 28 * phases.length,
    option: (palette, width) => {
      const numLines = Math.max(2, Math.floor(width / 160));
      return {
        grid: { left: 8, right: LABEL_ROOM, top: 12, bottom: 8, containLabel: true },
        xAxis: axis(palette, {
          type: "value",
          max: full,
          interval: interval(full, numLines),
          axisLabel: { formatter: (amount) => format(amount), hideOverlap: true, showMaxLabel: true },
        }),
        yAxis: axis(palette, {
          type: "category",
          data: phases.map((phase) => phase.name),
          inverse: true,
          splitLine: { show: false },
        }),
        series: parts.map((part) => ({
          name: part.name,
          type: "bar",
          stack: "all",
          barCategoryGap: "30%",
          itemStyle: {
            color: part.colour < 0 ? palette.free : palette.series[part.colour],
            borderColor: palette.card,
            borderWidth: 0.5,
          },
          data: phases.map((phase) => part.of(phase)),
        })),
        tooltip: {
          trigger: "axis",
          axisPointer: { type: "shadow" },
          formatter: (shown) => {
            const phase = phases[shown[0].dataIndex];
            const held = parts.filter((part) => part.of(phase) > 0);
            return tip(
              phase.name,
              held.map((part) => [part.name, format(part.of(phase))]),
            );
          },
        },
      };
    },
  }).element;
}
