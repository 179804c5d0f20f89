/** What all charts share: the library, the colours of the page, a size that follows the window, a table next to each. */

import { fill, h, newId } from "../dom.js";

let library = null;

/** The chart library, fetched by the first chart of a page. */
function echarts() {
  library ??= import("../vendor/echarts.esm.min.mjs");
  return library;
}

const NUM_COLOURS = 10;
const isDark = matchMedia("(prefers-color-scheme: dark)");

/** The colours of the page, in light or dark as it is now. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    faint: of("faint"),
    rule: of("rule"),
    firm: of("firm"),
    card: of("card"),
    free: of("free"),
    series: Array.from({ length: NUM_COLOURS }, (_, i) => of(`c${i + 1}`)),
  };
}

/**
 * A chart with its caption and its numbers as a table.
 *
 * @param {object} chart
 * @param {string} chart.title what it shows, for those who do not see it
 * @param {string} chart.caption how to read it
 * @param {(colours: object, width: number) => object} chart.option of the library, for a width in pixels
 * @param {(width: number) => number} chart.height in pixels
 * @param {() => Node} chart.table the same numbers; made when it is opened
 * @param {Array<[string, number]> | (() => Array<[string, number]>)} chart.legend names and numbers of colours
 * @param {(event: object) => void} [chart.clicked]
 * @returns {{element: Node, redraw: () => void}}
 */
export function chart({ title, caption, option, height, table, legend, clicked = null }) {
  const id = newId("chart");
  const canvas = h("div", { class: "chart", role: "img", "aria-labelledby": id });
  const key = h("ul", { class: "legend", "aria-hidden": "true" });
  const inTable = h("div", {});
  const details = h(
    "details",
    { toggle: () => details.open && fill(inTable, table()) },
    h("summary", {}, `${title}, as a table`),
    inTable,
  );
  let drawn = null;

  function redraw() {
    const width = canvas.clientWidth;
    if (drawn === null || width === 0) return;
    const palette = colours();
    canvas.style.height = `${height(width)}px`;
    drawn.resize();
    drawn.setOption(
      { animation: false, stateAnimation: { duration: 0 }, ...frame(palette), ...option(palette, width) },
      { notMerge: true },
    );
    fill(
      key,
      (typeof legend === "function" ? legend() : legend).map(([name, colour]) =>
        h("li", {}, swatch(colour < 0 ? palette.free : palette.series[colour]), name),
      ),
    );
    if (details.open) fill(inTable, table());
    canvas.setAttribute("data-drawn", "");
  }

  async function begin() {
    const { init } = await echarts();
    canvas.style.height = `${height(canvas.clientWidth)}px`;
    drawn = init(canvas, null, { renderer: "canvas" });
    if (clicked) drawn.on("click", clicked);
    let before = 0;
    new ResizeObserver(() => {
      if (canvas.clientWidth !== before) {
        before = canvas.clientWidth;
        redraw();
      }
    }).observe(canvas);
    isDark.addEventListener("change", redraw);
  }

  requestAnimationFrame(begin);
  const element = h("figure", {}, key, canvas, h("figcaption", { id }, h("span", {}, `${title}. `), caption), details);
  return { element, redraw };
}

function swatch(colour) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", "12");
  svg.setAttribute("height", "12");
  const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [key, value] of Object.entries({ width: 12, height: 12, rx: 3, fill: colour }))
    square.setAttribute(key, value);
  svg.append(square);
  return svg;
}

/** What every chart looks like. */
function frame(palette) {
  return {
    color: palette.series,
    textStyle: { color: palette.ink, fontFamily: getComputedStyle(document.body).fontFamily },
    aria: { enabled: false }, // the figure has a caption and a table
    tooltip: {
      className: "tip",
      confine: true,
      transitionDuration: 0,
      backgroundColor: palette.card,
      borderColor: palette.firm,
      textStyle: { color: palette.ink },
      extraCssText: "box-shadow: 0 2px 12px rgb(0 0 0 / .18)",
    },
  };
}

/** An axis of the page's look. */
export function axis(palette, options) {
  const { axisLabel = {}, ...others } = options;
  return {
    axisLine: { lineStyle: { color: palette.firm } },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: palette.rule } },
    nameTextStyle: { color: palette.faint },
    axisLabel: { color: palette.faint, ...axisLabel },
    ...others,
  };
}

/** What a tooltip says: a heading, and names with values. The library is handed the element, never markup. */
export function tip(heading, entries) {
  return h(
    "div",
    {},
    h("strong", {}, heading),
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        entries.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value))),
      ),
    ),
  );
}
