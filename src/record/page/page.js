"use strict";
(() => {
  const root = document.documentElement;
  const charts = [];
  // Colours that stay apart for readers who confuse red and green (Okabe and Ito), and marks that differ too.
  const colours = { light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#3a3a3a", "#56b4e9", "#a04000"],
                    dark: ["#56b4e9", "#ff9e4a", "#2fd6a3", "#e8a3cb", "#f0e442", "#d0d0d0", "#8ab4ff", "#ffc080"] };
  const marks = ["circle", "rect", "triangle", "rectRot", "cross", "star", "crossRot", "dash"];
  const number = value => Number(value.toPrecision(5)).toLocaleString("en");

  const theme = () => root.dataset.theme || "light";
  const style = name => getComputedStyle(root).getPropertyValue(name).trim();

  const dataset = (chart, series, index) => {
    const colour = colours[theme()][index % 8];
    const bars = chart.kind === "bars" || chart.kind === "stacked";
    const joined = chart.kind === "lines" || series.line;
    return {
      label: series.name, type: bars ? "bar" : joined ? "line" : "scatter",
      // A series need not have a point in every category.
      data: series.points.map(p => ({ x: bars ? chart.categories[p[0]] : p[0], y: p[1] })),
      // Of more than eight series none has both the colour and the mark of another.
      borderColor: colour, backgroundColor: colour, pointStyle: marks[(index + Math.floor(index / 8)) % 8],
      pointRadius: series.points.length > 200 ? 2 : 4, showLine: joined, borderWidth: 2, order: series.line ? 1 : 0,
    };
  };

  const axis = (chart, title, log) => ({
    type: log ? "logarithmic" : "linear", title: { display: true, text: title, color: style("--ink") },
    ticks: { color: style("--quiet"), autoSkipPadding: 14 }, grid: { color: style("--line") },
  });

  const describe = (chart, series, point) => {
    const x = chart.categories.length ? chart.categories[point[0]] : `${number(point[0])} (${chart.x})`;
    return `${point[2] ? point[2] + ": " : ""}${series.name}, ${x}, ${number(point[1])} (${chart.y})`;
  };

  const draw = chart => {
    const canvas = document.getElementById("chart-" + chart.id);
    // The legend of many series must not take the room of the picture.
    canvas.parentElement.style.minHeight = `${Math.min(48, 20 + 1.3 * chart.series.length)}rem`;
    const bars = chart.kind === "bars" || chart.kind === "stacked";
    const x = axis(chart, chart.x, chart.logarithmic), y = axis(chart, chart.y, chart.logarithmic);
    if (bars) { x.type = "category"; y.beginAtZero = true; }
    if (chart.kind === "stacked") x.stacked = y.stacked = true;
    return new Chart(canvas, {
      type: bars ? "bar" : "scatter",
      data: { labels: bars ? chart.categories : undefined, datasets: chart.series.map((s, i) => dataset(chart, s, i)) },
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, scales: { x, y },
        plugins: {
          legend: { position: "bottom", labels: { color: style("--ink"), usePointStyle: true } },
          tooltip: { callbacks: { title: () => "", label: item => {
            const series = chart.series[item.datasetIndex];
            return describe(chart, series, series.points[item.dataIndex]);
          } } },
        },
      },
    });
  };

  // Arrow keys walk over all points; what is under the mark is said in words beside the chart.
  const walk = (chart, canvas) => {
    const places = chart.series.flatMap((s, d) => s.points.map((p, i) => [d, i]));
    let at = -1;
    canvas.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || !places.length) return;
      event.preventDefault();
      at = (at + step + places.length) % places.length;
      const [d, i] = places[at];
      const drawn = charts.find(c => c.chart === chart).drawn;
      drawn.setActiveElements([{ datasetIndex: d, index: i }]);
      drawn.tooltip.setActiveElements([{ datasetIndex: d, index: i }], { x: 0, y: 0 });
      drawn.update("none");
      document.getElementById("point-" + chart.id).textContent = describe(chart, chart.series[d], chart.series[d].points[i]);
    });
  };

  const setTheme = name => {
    root.dataset.theme = name;
    for (const entry of charts) {
      entry.drawn.destroy();
      entry.drawn = draw(entry.chart);
    }
  };

  const value = text => {
    const match = /^-?[\d.]+/.exec(text.replace(/,/g, ""));
    const units = { ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
    return match ? Number(match[0]) * (units[text.slice(match[0].length).trim()] || 1) : NaN;
  };

  const sortable = table => {
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = cell.textContent;
      cell.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = cell.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => {
          const s = a.cells[column].textContent, t = b.cells[column].textContent, m = value(s), n = value(t);
          const order = isNaN(m) || isNaN(n) ? s.localeCompare(t, "en") : m - n;
          return down ? -order : order;
        });
        table.tBodies[0].append(...rows);
      });
    });
  };

  // A timeline shows the part of its time between `from` and `from + width`; no text is in it that could be stretched.
  const zoomable = picture => {
    const [, , whole, height] = picture.getAttribute("viewBox").split(" ").map(Number);
    let from = 0, width = whole;
    const show = (start, part) => {
      width = Math.min(whole, Math.max(whole / 1000, part));
      from = Math.min(whole - width, Math.max(0, start));
      picture.setAttribute("viewBox", `${from} 0 ${width} ${height}`);
    };
    const zoom = (factor, at = 0.5) => factor ? show(from + width * at * (1 - factor), width * factor) : show(0, whole);
    for (const button of picture.parentElement.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => zoom(Number(button.dataset.zoom)));
    }
    picture.addEventListener("keydown", event => {
      const keys = { "+": () => zoom(0.5), "-": () => zoom(2), "0": () => zoom(0),
                     ArrowLeft: () => show(from - width / 4, width), ArrowRight: () => show(from + width / 4, width) };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    picture.addEventListener("wheel", event => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, event.offsetX / picture.clientWidth);
    }, { passive: false });
    let held = null;
    picture.addEventListener("pointerdown", event => { held = { x: event.clientX, from }; picture.setPointerCapture(event.pointerId); });
    picture.addEventListener("pointermove", event => { if (held) show(held.from - (event.clientX - held.x) / picture.clientWidth * width, width); });
    picture.addEventListener("pointerup", () => { held = null; });
  };

  root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  for (const chart of JSON.parse(document.getElementById("charts").textContent)) {
    charts.push({ chart, drawn: draw(chart) });
    walk(chart, document.getElementById("chart-" + chart.id));
  }
  document.querySelectorAll(".timeline").forEach(zoomable);
  document.getElementById("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  sortable(document.getElementById("cells"));
})();
