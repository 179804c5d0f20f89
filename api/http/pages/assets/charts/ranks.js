/** Stacked amounts of every rank: lying bars for a few ranks, standing columns for many. */

import { axis, chart, tip } from "./chart.js";

const MOST_LYING = 16;
const ZOOM_FROM = 48;
const LABEL_ROOM = 44; // half a label, which stands in the middle below the end of the scale

/**
 * @param {object} stack
 * @param {string} stack.title
 * @param {string} stack.caption
 * @param {Array<{rank: number, host: number}>} stack.ranks in the order to draw
 * @param {Array<{name: string, colour: number, of: (rank: object) => number}>} stack.parts
 *   a colour below 0 is that of what is free
 * @param {(amount: number) => string} stack.format
 * @param {number} [stack.full] the end of the scale, where there is one
 * @param {(end: number, parts: number) => number} [stack.interval] between the lines of the scale
 * @param {number} [stack.podSize] ranks of a pod, if hosts are in pods
 * @param {() => Node} stack.table
 */
export function rankStack({ title, caption, ranks, parts, format, full = null, interval = null, podSize, table }) {
  const order = { of: ranks };
  const isLying = ranks.length <= MOST_LYING;
  const drawn = chart({
    title,
    caption,
    table,
    legend: parts.map((part) => [part.name, part.colour]),
    height: () => (isLying ? 60 + 26 * ranks.length : ranks.length >= ZOOM_FROM ? 340 : 300),
    option: (palette, width) => option(palette, width),
  });

  function option(palette, width) {
    const names = axis(palette, {
      type: "category",
      data: order.of.map((rank) => String(rank.rank)),
      name: isLying ? "" : "rank",
      nameLocation: "middle",
      nameGap: 26,
      inverse: isLying,
      splitLine: { show: false },
      axisLabel: isLying ? { formatter: (rank) => `rank ${rank}` } : { hideOverlap: true },
    });
    const numLines = isLying ? Math.max(2, Math.floor(width / 160)) : 5;
    const amounts = axis(palette, {
      type: "value",
      max: full ?? undefined,
      splitNumber: numLines,
      interval: interval && full ? interval(full, numLines) : undefined,
      axisLabel: { formatter: (amount) => format(amount), hideOverlap: true, showMaxLabel: full ? true : null },
    });
    const hasZoom = ranks.length >= ZOOM_FROM;
    return {
      grid: {
        left: 8,
        right: isLying ? LABEL_ROOM : 24,
        top: 12,
        bottom: hasZoom ? 64 : isLying ? 8 : 28,
        containLabel: true,
      },
      xAxis: isLying ? amounts : names,
      yAxis: isLying ? names : amounts,
      dataZoom: hasZoom
        ? [
            {
              type: "slider",
              height: 18,
              bottom: 8,
              borderColor: palette.rule,
              textStyle: { color: palette.faint },
              brushSelect: false,
              showDataShadow: false,
            },
          ]
        : [],
      series: parts.map((part) => ({
        name: part.name,
        type: "bar",
        stack: "all",
        barCategoryGap: isLying ? "30%" : ranks.length > 64 ? "0%" : "15%",
        itemStyle: {
          color: part.colour < 0 ? palette.free : palette.series[part.colour],
          borderColor: palette.card,
          borderWidth: isLying ? 0.5 : 0,
        },
        data: order.of.map((rank) => part.of(rank)),
      })),
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: (shown) => {
          const rank = order.of[shown[0].dataIndex];
          return tip(
            `rank ${rank.rank}, host ${rank.host}${podSize ? `, pod ${Math.floor(rank.rank / podSize)}` : ""}`,
            parts.map((part) => [part.name, format(part.of(rank))]),
          );
        },
      },
    };
  }

  return {
    element: drawn.element,
    reorder: (inOrder) => {
      order.of = inOrder;
      drawn.redraw();
    },
  };
}
