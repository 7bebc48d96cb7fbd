"use strict";
// Texts from data reach the page as text nodes alone, never as markup.
(() => {
  const content = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = content("figures"), tables = content("tables-data"), themes = content("themes");
  const wanted = window.matchMedia("(prefers-color-scheme: dark)");
  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const save = (name, blob) => {
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  // ---- Theme ----
  let printing = false;
  const theme = () =>
    printing ? "light" : document.documentElement.dataset.theme || (wanted.matches ? "dark" : "light");
  const toggle = document.getElementById("theme");
  const label = () => {
    const next = theme() === "dark" ? "Light" : "Dark";
    toggle.textContent = `${next} theme`;
  };

  // ---- Figures ----
  // What A4 leaves between its margins and those of a card, in pixels, for one figure and for two in a line.
  const paperWidth = 630, halfPaperWidth = 296;
  const views = new Map();
  const tip = element("div", { className: "tip" });
  document.body.append(tip);

  // Names of colours become colours; data are copied as they are, because Vega writes into them.
  const paint = (spec, colours) => {
    if (typeof spec === "string") return spec[0] === "$" ? colours[spec.slice(1)] ?? spec : spec;
    if (Array.isArray(spec)) return spec.map((item) => paint(item, colours));
    if (spec === null || typeof spec !== "object") return spec;
    const painted = {};
    for (const [key, value] of Object.entries(spec)) {
      painted[key] = key === "values" && Array.isArray(value)
        ? value.map((row) => (row !== null && typeof row === "object" ? { ...row } : row))
        : paint(value, colours);
    }
    return painted;
  };

  // Small multiples: as many columns as fit; Vega-Lite has written their number into two data sets too.
  const setColumns = (spec, columns) => {
    spec.layout.columns = columns;
    for (const data of spec.data) {
      const whole = 'length(data("facet_domain"))';
      if (data.name === "facet_domain_row") data.transform[0].stop = { signal: `ceil(${whole} / ${columns})` };
      if (data.name === "facet_domain_column") data.transform[0].stop = { signal: `min(${whole}, ${columns})` };
    }
  };

  // A long title of an axis takes several lines in a narrow figure.
  const broken = (title, width) => {
    const letters = Math.max(16, Math.floor((width - 150) / 7));
    const lines = [""];
    for (const word of String(title).split(" ")) {
      if (lines.at(-1) && lines.at(-1).length + word.length >= letters) lines.push("");
      lines.push([lines.pop(), word].filter(Boolean).join(" "));
    }
    return lines;
  };

  // Legends above a narrow figure are broken into lines. An average letter takes about seven pixels.
  const breakLegend = (spec, legend, width) => {
    const scale = legend.fill ?? legend.stroke ?? legend.strokeDash;
    const names = spec.scales.find(({ name }) => name === scale)?.domain;
    if (!Array.isArray(names) || legend.gradientLength) return;
    const longest = Math.max(...names.map((name) => String(name).length));
    const fit = Math.max(1, Math.floor((width - 20) / (34 + 7 * longest)));
    if (fit < names.length) legend.columns = fit;
  };

  const showTip = (handler, event, item, value) => {
    if (value === null || value === undefined || value === "") { tip.style.display = "none"; return; }
    const entries = typeof value === "object" ? Object.entries(value) : [["", value]];
    const known = entries.filter(([, told]) => !["NaN", "undefined", "null", ""].includes(String(told)));
    if (!known.length) { tip.style.display = "none"; return; }
    tip.replaceChildren(...known.map(([name, told]) =>
      element("div", {}, element("span", { textContent: name }), element("span", { textContent: String(told) }))));
    tip.style.display = "block";
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 4))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
  };

  const draw = async (place) => {
    const figure = figures[place.dataset.figure];
    const wide = place.closest("figure").classList.contains("wide");
    const width = printing ? (wide ? paperWidth : halfPaperWidth) : Math.floor(place.clientWidth);
    const spec = paint(figure.spec, { ...themes[theme()], font: themes.font });
    const { panels } = figure;
    let columns = 0;
    if (panels) {
      const [least, most] = figure.cell;
      const fit = Math.max(1, Math.min(most, panels, Math.floor((width - 55) / (least + 16))));
      // In as few lines, and these as full: four panels are two and two, not three and one.
      columns = Math.ceil(panels / Math.ceil(panels / fit));
      setColumns(spec, columns);
    } else {
      spec.width = width;
    }
    for (const legend of spec.legends ?? []) breakLegend(spec, legend, width);
    for (const axis of spec.axes ?? []) if (axis.orient === "bottom" && axis.title) axis.title = broken(axis.title, width);
    // A stage of its own for every drawing: of two at once, the later one stays.
    const stage = element("div");
    views.get(place)?.finalize?.();
    views.set(place, { stage, width });
    place.replaceChildren(stage);
    const drawn = await vegaEmbed(stage, spec, {
      mode: "vega", renderer: "svg", actions: false, defaultStyle: false, hover: false, tooltip: showTip,
    });
    if (panels) await fitPanels(stage, drawn.view, columns, width);
    if (views.get(place).stage === stage) views.set(place, { stage, width, view: drawn.view, finalize: drawn.finalize });
    else drawn.finalize();
  };

  // What axes and legends take beside the panels is known only when they are drawn.
  const fitPanels = async (stage, view, columns, width) => {
    for (let round = 0; round < 2; round += 1) {
      const drawn = stage.querySelector("svg").width.baseVal.value;
      const next = Math.max(60, Math.floor(view.signal("child_width") + (width - drawn) / columns));
      if (Math.abs(width - drawn) < columns) return;
      await view.signal("child_width", next).resize().runAsync();
    }
  };

  const places = [...document.querySelectorAll(".plot")];
  const drawAll = () => Promise.all(places.map(draw));

  const addTools = (place) => {
    const name = place.dataset.figure;
    const title = place.closest("figure").querySelector("h3");
    const button = (kind) => element("button", {
      type: "button", textContent: kind, title: `Save this figure as ${kind}`, ariaLabel: `Save ${title.textContent} as ${kind}`,
    });
    const asSvg = button("SVG");
    asSvg.onclick = async () => save(`${name}.svg`, new Blob([await views.get(place).view.toSVG()], { type: "image/svg+xml" }));
    const asPng = button("PNG");
    asPng.onclick = async () => (await views.get(place).view.toCanvas(2)).toBlob((blob) => save(`${name}.png`, blob));
    const head = element("div", { className: "head" });
    title.replaceWith(head);
    head.append(title, element("div", { className: "save" }, asSvg, asPng));
  };

  // ---- Tables ----
  const shownRows = 100;
  // Programs of tables take text that begins so for a formula; numbers are none.
  const plain = (cell) => (/^[=+\-@\t\r\n]/.test(cell) && !Number.isFinite(Number(cell)) ? `'${cell}` : cell);
  const quoted = (cell) => (/[",\n\r\t]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const shown = (cell, numeric) => {
    if (!numeric || cell === "") return cell;
    const number = Number(cell);
    if (!Number.isFinite(number)) return cell;
    if (Number.isInteger(number)) return Math.abs(number) < 1e15 ? number.toLocaleString("en") : number.toExponential(3);
    const size = Math.abs(number);
    return size >= 1e6 || size < 1e-4 ? number.toExponential(3) : String(Number(number.toPrecision(4)));
  };

  const compare = (column, numeric, direction) => (a, b) => {
    const x = a[column], y = b[column];
    // Missing values are last whatever the direction.
    if (x === "" || y === "") return (x === "") - (y === "");
    return direction * (numeric ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true }));
  };

  const buildTable = (details) => {
    const table = tables[details.dataset.table];
    if (details.dataset.built || !table) return;
    details.dataset.built = "yes";
    let order = table.rows, sorted = -1, direction = 1, most = shownRows, found = table.rows;
    const search = element("input", { type: "search", placeholder: "Search", ariaLabel: `Search in ${table.title}` });
    const told = element("output");
    const body = element("tbody"), head = element("tr");
    const more = element("button", { type: "button", textContent: "Show more" });
    const fill = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      found = order.filter((row) => words.every((word) => row.some((cell) => cell.toLowerCase().includes(word))));
      body.replaceChildren(...found.slice(0, most).map((row) => element("tr", {}, ...row.map((cell, k) => {
        const kind = table.numeric[k] ? "n" : table.sequence[k] ? "long" : cell.length > 60 ? "wraps" : "";
        return element("td", { className: kind, title: table.numeric[k] ? cell : "", textContent: shown(cell, table.numeric[k]) });
      }))));
      const n = found.length.toLocaleString("en");
      told.textContent = found.length > most ? `${most} of ${n} rows shown` : `${n} rows`;
      more.hidden = found.length <= most;
    };
    table.columns.forEach((name, k) => {
      const button = element("button", { type: "button", textContent: name.replaceAll("_", " ") });
      const cell = element("th", { scope: "col", className: table.numeric[k] ? "n" : "" }, button);
      button.onclick = () => {
        // Large numbers are what people look for first.
        direction = sorted === k ? -direction : table.numeric[k] ? -1 : 1;
        sorted = k;
        order = [...table.rows].sort(compare(k, table.numeric[k], direction));
        head.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        cell.setAttribute("aria-sort", direction < 0 ? "descending" : "ascending");
        fill();
      };
      head.append(cell);
    });
    const download = element("button", { type: "button", textContent: "Download CSV", className: "download" });
    download.onclick = () => {
      const lines = [table.columns, ...found].map((row) => row.map((cell) => quoted(plain(cell))).join(","));
      save(`${details.dataset.table}.csv`, new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
    };
    search.oninput = () => { most = shownRows; fill(); };
    more.onclick = () => { most += 10 * shownRows; fill(); };
    const scroll = element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: table.title },
      element("table", {}, element("thead", {}, head), body));
    details.querySelector(".inside").append(
      element("div", { className: "bar" }, search, told, download), scroll, element("div", { className: "tools" }, more));
    fill();
  };

  // ---- Start ----
  toggle.hidden = false;
  toggle.onclick = () => {
    document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
    label();
    drawAll();
  };
  wanted.addEventListener("change", () => { label(); drawAll(); });
  // On paper the page is light, and as wide as the paper.
  const folded = () => [...document.querySelectorAll("details.more:not([open])")];
  let unfolded = [];
  addEventListener("beforeprint", () => {
    printing = true;
    unfolded = folded();
    unfolded.forEach((details) => { details.open = true; });
    drawAll();
  });
  addEventListener("afterprint", () => {
    printing = false;
    unfolded.forEach((details) => { details.open = false; });
    drawAll();
  });
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => places.forEach((place) => {
      if (Math.floor(place.clientWidth) !== views.get(place)?.width) draw(place);
    }), 150);
  });
  addEventListener("scroll", () => { tip.style.display = "none"; }, { passive: true });
  label();
  places.forEach(addTools);
  document.querySelectorAll("details[data-table]").forEach((details) => {
    if (details.open) buildTable(details);
    details.addEventListener("toggle", () => { if (details.open) buildTable(details); });
  });
  // One after the other, so that the page can be read while the lower ones are drawn.
  (async () => {
    for (const place of places) {
      await draw(place);
      await new Promise((next) => { setTimeout(next); });
    }
    document.documentElement.dataset.ready = "yes";
  })();
})();
