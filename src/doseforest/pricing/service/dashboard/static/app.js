// The dashboard: asks the service with the reader's key, and draws what it answers.

import { bars, columns, doseText, element, intervals, lines, numbers, short } from "./charts.js";

const REFRESH = 10_000; // milliseconds
const STORED = "doseforest-key"; // kept for this tab alone
const at = (id) => document.getElementById(id);
let timer = null;

class Refused extends Error {}

async function ask(path) {
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${sessionStorage.getItem(STORED)}` } });
  if (answer.status === 401 || answer.status === 403) throw new Refused();
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  return answer.json();
}

function show(id, ...children) {
  const opened = [...at(id).querySelectorAll("details")].map((own) => own.open);
  at(id).replaceChildren(...children);
  at(id).querySelectorAll("details").forEach((own, k) => { own.open = opened[k] ?? false; });
}

const empty = (text) => element("p", { class: "empty" }, text);
const room = (id) => Math.max(at(id).clientWidth, 260); // pixels
const note = (text, kind = "note") => element("p", { class: kind }, text);

function facts(pairs) {
  return element("dl", {}, ...pairs.flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, String(value))]));
}

function drawPolicy({ policies, problems }) {
  const own = policies.find((policy) => policy.active);
  const warnings = problems.map((text) => note(text, "note bad"));
  if (!own) return show("policy", empty("No policy is active. Publish one: doseforest registry publish …"), ...warnings);
  const several = typeof own.doses[0] === "object";
  show("policy",
    note(`Version ${own.version}`, "big"),
    facts([
      ["Kind", own.kind.replace("_", " ")],
      ["Note", own.note || "–"],
      ...(several ? [["Components", Object.keys(own.doses[0]).join(", ")]] : []),
      ["Doses", own.doses.map(doseText).join(", ")],
      ["Needs", own.features.join(", ") || "nothing"],
      ["Published", own.published_at.slice(0, 16).replace("T", " ")],
      ["File", `${own.sha256.slice(0, 12)}…`],
    ]), ...warnings);
}

function drawTime(own) {
  const day = own.hours > 24;
  const names = own.starts.map((start) => {
    const time = new Date(start);
    const clock = time.toTimeString().slice(0, 5);
    return day ? `${time.getDate()}.${time.getMonth() + 1}. ${clock}` : clock;
  });
  const total = own.decisions.reduce((sum, value) => sum + value, 0);
  const spent = own.spend.reduce((sum, value) => sum + value, 0);
  const back = own.fallbacks.reduce((sum, value) => sum + value, 0);
  if (total === 0) return show("time", empty("Nothing was decided in this period."));
  const half = room("time") > 700 ? (room("time") - 24) / 2 : room("time"); // side by side, or below
  show("time",
    facts([["Decisions", short(total)], ["Expected spend", short(spent)],
      ["Fallbacks", `${short(back)} (${short((100 * back) / total)} %)`]]),
    element("div", { class: "pair" },
      element("figure", {}, element("figcaption", {}, "Decisions"),
        columns(own.decisions, names, `Decisions over time, ${total} in all`, half, 0)),
      element("figure", {}, element("figcaption", {}, "Expected spend"),
        columns(own.spend, names, `Expected spend over time, ${short(spent)} in all`, half, 1))),
    numbers(["From", "Decisions", "Spend", "Fallbacks"],
      names.map((name, k) => [name, own.decisions[k], short(own.spend[k]), own.fallbacks[k]])));
  return undefined;
}

function drawDoses(own) {
  const total = own.doses.reduce((sum, dose) => sum + dose.count, 0);
  if (total === 0) return show("doses", empty("None in this period."));
  const share = (count) => `${short((100 * count) / total)} %`;
  show("doses", bars(own.doses.map((dose) => ({ name: dose.name, value: dose.count, text: share(dose.count) })),
    "Share of decisions with each dose", room("doses")),
    ...(own.components.length ? [note(`Doses are (${own.components.join(", ")}).`)] : []),
    numbers(["Dose", "Decisions"], own.doses.map((dose) => [dose.name, dose.count])));
  return undefined;
}

function drawOverlap(own) {
  const { supported, unsupported, unknown } = own.support;
  const total = supported + unsupported + unknown;
  if (total === 0) return show("overlap", empty("Nothing was decided in this period."));
  const known = supported + unsupported;
  const rows = own.reasons.map((reason) => ({
    name: reason.name.replaceAll("_", " "), value: reason.count, text: `${short((100 * reason.count) / total)} %`,
  }));
  const text = known === 0 ? "The active policy has no model of support." :
    `${short((100 * supported) / known)} % of the decisions with a model of support were doses that such units had in training.`;
  show("overlap", note(text), note("Why doses were given"), bars(rows, "Share of decisions by reason", room("overlap"), { most: total }),
    numbers(["Reason", "Decisions"], own.reasons.map((reason) => [reason.name, reason.count])));
  return undefined;
}

function drawCurves(own) {
  const select = at("feature");
  if ([...select.options].map((option) => option.value).join() !== own.features.join()) {
    select.replaceChildren(...own.features.map((name) => element("option", { value: name }, name)));
    if (own.feature) select.value = own.feature;
  }
  select.disabled = own.features.length === 0;
  if (own.segments.length === 0) {
    return show("curves", empty(own.features.length ? "No units were decided on yet." : "The active policy has no forest."));
  }
  const several = typeof own.doses[0] === "object";
  const charts = own.axes.flatMap(({ component, places }) => {
    const doses = places.map((place) => (several ? own.doses[place][component] : own.doses[place]));
    const drawn = own.segments.map((one) => ({ ...one, curve: places.map((place) => one.curve[place]) }));
    const beside = several ? ", the other components at the baseline" : "";
    return lines(doses, drawn, `Average response to each ${component ?? "dose"}, by ${own.feature}${beside}`,
      room("curves"), component ?? "dose");
  });
  show("curves", ...charts,
    note(`Average predicted response of recent units, by ${own.feature}.`),
    ...(several ? [note(`Doses are (${Object.keys(own.doses[0]).join(", ")}).`)] : []),
    ...(several && charts.length ? [note("Each chart is along one component, with the others at the baseline.")] : []),
    numbers(["Dose", ...own.segments.map((one) => one.name)],
      own.doses.map((dose, k) => [doseText(dose), ...own.segments.map((one) => short(one.curve[k]))])));
  return undefined;
}

function drawDrift(own) {
  if (own.features.length === 0) return show("drift", empty(`Too few decisions to tell (${own.rows}).`));
  const colour = { steady: "fillgood", moving: "fillwarn", drifted: "fillbad" };
  const shown = own.features.slice(0, 12);
  show("drift", bars(shown.map((one) => ({
    name: one.name, value: one.index, text: `${one.index.toFixed(2)}`, colour: colour[one.verdict],
  })), "Population stability index of each feature", room("drift"), { most: 0.5, mark: [0.1, 0.25] }),
  note(`Stability index of ${own.rows} recent units against ${own.reference}. Below 0.1 steady, above 0.25 drifted.`),
  numbers(["Feature", "Index", "Verdict"], own.features.map((one) => [one.name, one.index.toFixed(3), one.verdict])));
  return undefined;
}

function drawExperiment(own) {
  if (!own) return show("experiment", empty("There has been no experiment."));
  const { experiment, comparisons, sample_ratio: ratio } = own;
  const state = experiment.stopped_at ? "stopped" : "running";
  const parts = [facts([["Name", `${experiment.name} (${state})`],
    ["Arms", experiment.arms.map((arm) => `${arm.name}: version ${arm.version}, ${short(arm.share * 100)} %`).join("; ")],
    ["Cells", Object.entries(own.cells).map(([arm, count]) => `${arm} ${count}`).join(", ")]])];
  if (ratio) {
    parts.push(element("p", { class: ratio.holds ? "note good" : "note bad" },
      element("span", { class: "mark" }, ratio.holds ? "✓ Sample ratio holds. " : "✗ Sample ratio is broken. "), ratio.text));
  }
  if (own.mixed_cells > 0) parts.push(note(`${own.mixed_cells} cells are in several arms.`, "note bad"));
  const rows = comparisons.map(({ control, treatment, outcome }) => {
    const relative = outcome.relative !== null;
    const [value, low, high] = relative ? [outcome.relative, outcome.relative_low, outcome.relative_high] :
      [outcome.absolute, outcome.low, outcome.high];
    const text = (own) => (relative ? `${short(own * 100)} %` : short(own));
    const chance = outcome.p_value < 0.001 ? "p < 0.001" : `p = ${outcome.p_value.toPrecision(2)}`;
    const name = `${treatment} against ${control}: ${text(value)} [${text(low)}, ${text(high)}], ${chance}`;
    return { name, value, low, high, percent: relative };
  });
  if (rows.length) {
    parts.push(...rows.map((row) => note(row.name, "effect")));
    parts.push(intervals(rows, `Effect on the ${own.metric}: ${rows.map((row) => row.name).join("; ")}`, room("experiment")));
    parts.push(note(`${own.metric} of a decision, with 95 % intervals by cells.`));
  }
  parts.push(...own.problems.map((text) => note(text)));
  show("experiment", ...parts);
  return undefined;
}

async function newestResult() {
  const { experiments } = await ask("/v1/experiments");
  return experiments.length ? ask(`/v1/experiments/${experiments[0].id}/result`) : null;
}

async function refresh() {
  clearTimeout(timer);
  try {
    const feature = at("feature").value;
    const query = feature ? `?feature=${encodeURIComponent(feature)}` : "";
    const [policies, overview, result, curves, drift] = await Promise.all([
      ask("/v1/policies"), ask(`/v1/dashboard/overview?hours=${at("hours").value}`), newestResult(),
      ask(`/v1/dashboard/curves${query}`), ask("/v1/dashboard/drift")]);
    enter(true); // before drawing: charts are as wide as their places
    drawPolicy(policies);
    drawTime(overview);
    drawDoses(overview);
    drawOverlap(overview);
    drawExperiment(result);
    drawCurves(curves);
    drawDrift(drift);
    at("status").textContent = `Up to date, ${new Date().toTimeString().slice(0, 8)}`;
  } catch (error) {
    if (error instanceof Refused) return leave("This key is not valid here.");
    at("status").textContent = `Not up to date: ${error.message}`;
  }
  timer = setTimeout(refresh, REFRESH);
  return undefined;
}

function enter(inside) {
  const before = at("main").hidden;
  at("main").hidden = !inside;
  at("enter").hidden = inside;
  at("leave").hidden = !inside;
  if (inside && before) at("main").focus();
}

function leave(reason = "") {
  clearTimeout(timer);
  sessionStorage.removeItem(STORED);
  enter(false);
  at("refusal").textContent = reason;
  at("status").textContent = "Not signed in";
  at("key").focus();
}

at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(STORED, at("key").value.trim());
  at("key").value = "";
  at("refusal").textContent = "";
  refresh();
});
at("leave").addEventListener("click", () => leave());
at("hours").addEventListener("change", refresh);
at("feature").addEventListener("change", refresh);
addEventListener("resize", () => {
  clearTimeout(timer);
  timer = setTimeout(() => at("main").hidden || refresh(), 200);
});
if (sessionStorage.getItem(STORED)) refresh();
else at("key").focus();
