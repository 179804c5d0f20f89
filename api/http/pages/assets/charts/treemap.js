/** Tables as rectangles, as large as their bytes. */

import { chart, tip } from "./chart.js";

/** Below it a name is a few letters, which say nothing; the tooltip and the list have it. */
const LEAST_LABELLED_PIXELS = 3600;

const size = (width) => Math.min(520, Math.max(320, width * 0.5));

/**
 * @param {object} map
 * @param {string} map.title
 * @param {string} map.caption
 * @param {() => Array<{name: string, colour: number, children: Array<object>}>} map.groups their children are
 *   {name, value, colour, lines}: the colour where it is not that of the group, and more lines of the tooltip
 * @param {(amount: number) => string} map.format
 * @param {Array<[string, number]>} map.legend
 * @param {(name: string) => void} map.chosen
 * @param {() => Node} map.table
 */
export function treemap({ title, caption, groups, format, legend, chosen, table }) {
  return chart({
    title,
    caption,
    table,
    legend,
    clicked: (event) => event.data?.lines && chosen(event.data.name),
    height: size,
    option: (palette, width) => {
      const shown = groups();
      const all = shown.reduce((sum, group) => group.children.reduce((part, child) => part + child.value, sum), 0);
      const pixels = (node) => (node.value / all) * width * size(width);
      return {
        series: [
          {
            type: "treemap",
            animation: false,
            data: shown.map((group) => ({
              name: group.name,
              // Seen where the group is too small for its children.
              itemStyle: { color: palette.series[group.colour] },
              children: group.children.map((child) => ({
                ...child,
                itemStyle: { color: palette.series[child.colour ?? group.colour] },
              })),
            })),
            left: 0,
            right: 0,
            top: 0,
            bottom: 0,
            roam: false,
            nodeClick: false,
            breadcrumb: { show: false },
            sort: "desc",
            visibleMin: 4,
            childrenVisibleMin: 4,
            upperLabel: {
              show: true,
              height: 20,
              color: palette.faint,
              formatter: (node) => node.name,
              overflow: "truncate",
            },
            itemStyle: { borderColor: palette.card, gapWidth: 1, borderWidth: 1 },
            label: {
              show: true,
              color: palette.card,
              fontWeight: 600,
              formatter: (node) => (pixels(node) < LEAST_LABELLED_PIXELS ? "" : `${node.name}\n${format(node.value)}`),
              overflow: "truncate",
              fontSize: 12,
              lineHeight: 16,
            },
            levels: [
              { itemStyle: { borderWidth: 0, gapWidth: 4 }, upperLabel: { show: false } },
              { itemStyle: { borderColor: palette.card, borderWidth: 0, gapWidth: 1 }, colorMappingBy: "index" },
              {},
            ],
          },
        ],
        tooltip: {
          formatter: (node) => tip(node.name, [["bytes", format(node.value)], ...(node.data?.lines ?? [])]),
        },
      };
    },
  });
}
