// Charts as SVG, from numbers alone. A unit of a drawing is a pixel, so that texts stay readable:
// every chart is told how wide its place is.

const SPACE = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function shape(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SPACE, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)}k`;
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(3)));
}

// A dose of several components is an object; their names stand beside the chart or table.
export function doseText(dose) {
  return typeof dose === "object" ? `(${Object.values(dose).map(short).join(", ")})` : short(dose);
}

function drawing(width, height, label) {
  return shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

// Round numbers that cover a range.
export function ticks(low, high, count = 4) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((own) => own >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(k * step);
  return found;
}

function scale(low, high, start, end) {
  const width = high - low || 1;
  return (value) => start + ((value - low) / width) * (end - start);
}

function grid(svg, y, marks, left, right) {
  for (const mark of marks) {
    svg.append(
      shape("line", { class: "grid", x1: left, x2: right, y1: y(mark), y2: y(mark) }),
      shape("text", { x: left - 6, y: y(mark) + 4, "text-anchor": "end" }, short(mark)),
    );
  }
}

export function numbers(head, rows) {
  const cells = (tag, values) => element("tr", {}, ...values.map((own) => element(tag, {}, String(own))));
  const table = element("table", {}, element("thead", {}, cells("th", head)),
    element("tbody", {}, ...rows.map((row) => cells("td", row))));
  const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" }, table);
  return element("details", {}, element("summary", {}, "Numbers"), scroll);
}

// Bars over time, one series.
export function columns(values, names, label, width, colour = 0) {
  const height = 170, left = 44, bottom = 22, top = 8;
  const svg = drawing(width, height, label);
  const highest = Math.max(...values, 0) || 1;
  const y = scale(0, highest, height - bottom, top);
  grid(svg, y, ticks(0, highest, 3), left, width);
  const step = (width - left) / values.length;
  values.forEach((value, k) => {
    const bar = shape("rect", {
      class: `fill${colour}`, x: left + k * step + step * 0.12, width: step * 0.76,
      y: y(value), height: Math.max(y(0) - y(value), value > 0 ? 1 : 0), rx: Math.min(2, step / 4),
    });
    bar.append(shape("title", {}, `${names[k]}: ${short(value)}`));
    svg.append(bar);
  });
  const shown = width < 420 ? [0, values.length - 1] : [0, Math.floor(values.length / 2), values.length - 1];
  for (const k of shown) {
    const anchor = k === 0 ? "start" : k === values.length - 1 ? "end" : "middle";
    svg.append(shape("text", { x: left + (k + 0.5) * step, y: height - 5, "text-anchor": anchor }, names[k]));
  }
  return svg;
}

// Lines over doses, with colours and dashes, so that neither is needed alone.
export function lines(doses, segments, label, width, axis = "dose") {
  const height = 250, left = 44, bottom = 34, top = 8;
  const svg = drawing(width, height, label);
  const all = segments.flatMap((own) => own.curve);
  const low = Math.min(...all), high = Math.max(...all);
  const room = (high - low || 1) * 0.06;
  const x = scale(Math.min(...doses), Math.max(...doses), left + 4, width - 8);
  const y = scale(low - room, high + room, height - bottom, top);
  grid(svg, y, ticks(low - room, high + room), left, width);
  for (const dose of ticks(Math.min(...doses), Math.max(...doses), 5)) {
    svg.append(shape("text", { x: x(dose), y: height - bottom + 16, "text-anchor": "middle" }, short(dose)));
  }
  svg.append(shape("text", { x: (left + width) / 2, y: height - 3, "text-anchor": "middle" }, axis));
  segments.forEach((own, k) => {
    const path = own.curve.map((value, i) => `${i ? "L" : "M"}${x(doses[i])} ${y(value)}`).join("");
    svg.append(shape("path", { class: `line stroke${k % 4} dash${k % 4}`, d: path }));
    own.curve.forEach((value, i) => {
      const dot = shape("circle", { class: `fill${k % 4}`, cx: x(doses[i]), cy: y(value), r: 3 });
      dot.append(shape("title", {}, `${own.name}, dose ${short(doses[i])}: ${short(value)}`));
      svg.append(dot);
    });
  });
  const legend = element("ul", { class: "legend" }, ...segments.map((own, k) => {
    const key = shape("svg", { viewBox: "0 0 28 10", "aria-hidden": "true" },
      shape("path", { class: `line stroke${k % 4} dash${k % 4}`, d: "M1 5H27" }));
    return element("li", {}, key, `${own.name} (${own.units})`);
  }));
  return [svg, legend];
}

// Horizontal bars with names: counts, shares, indices.
export function bars(rows, label, width, { most = null, mark = null } = {}) {
  const step = 28, left = 128, right = 58;
  const svg = drawing(width, rows.length * step + 4, label);
  const highest = most ?? (Math.max(...rows.map((own) => own.value), 0) || 1);
  const x = scale(0, highest, left, width - right);
  rows.forEach((own, k) => {
    const y = k * step + 3;
    const name = own.name.length > 18 ? `${own.name.slice(0, 17)}…` : own.name;
    svg.append(
      shape("rect", { class: "track", x: left, y, width: width - right - left, height: 18, rx: 3 }),
      shape("rect", { class: own.colour ?? "fill0", x: left, y, width: Math.max(x(Math.min(own.value, highest)) - left, 1), height: 18, rx: 3 },
        shape("title", {}, `${own.name}: ${own.text}`)),
      shape("text", { class: "value", x: left - 8, y: y + 13, "text-anchor": "end" }, name),
      shape("text", { class: "value", x: width - right + 8, y: y + 13 }, own.text),
    );
  });
  for (const at of mark ?? []) {
    svg.append(shape("line", { class: "zero", x1: x(at), x2: x(at), y1: 0, y2: rows.length * step }));
  }
  return svg;
}

// Estimates with intervals around a line of no effect.
export function intervals(rows, label, width) {
  const step = 40, left = 12, right = 12;
  const svg = drawing(width, rows.length * step + 22, label);
  const ends = rows.flatMap((own) => [own.low, own.high, 0]);
  const low = Math.min(...ends), high = Math.max(...ends);
  const room = (high - low || 1) * 0.08;
  const x = scale(low - room, high + room, left, width - right);
  svg.append(shape("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: rows.length * step }));
  rows.forEach((own, k) => {
    const y = k * step + 20;
    const colour = own.low > 0 ? "good" : own.high < 0 ? "bad" : "warn";
    svg.append(
      shape("rect", { class: `fill${colour}`, x: x(own.low), y: y - 3, width: Math.max(x(own.high) - x(own.low), 2), height: 6, rx: 3 }),
      shape("circle", { class: `fill${colour}`, cx: x(own.value), cy: y, r: 7 }),
    );
  });
  for (const mark of ticks(low - room, high + room)) {
    svg.append(shape("text", { x: x(mark), y: rows.length * step + 16, "text-anchor": "middle" }, own(mark)));
  }
  return svg;

  function own(mark) {
    return rows[0].percent ? `${short(mark * 100)} %` : short(mark);
  }
}
