// Draw arrows between the spans of a flow, light up what belongs together, and fetch the evidence of an edge.
import { element, getJson } from "./page.js";

const SVG = "http://www.w3.org/2000/svg";
const area = document.getElementById("excerpts");
let chosen = null;

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// The part of a span that can be seen, relative to the area: a long line may be scrolled inside of its excerpt.
function box(number, origin) {
  const part = area.querySelector(`.at-${number}`);
  if (!part) return null;
  const [place, frame] = [part.getClientRects()[0], part.closest(".source").getBoundingClientRect()];
  if (!place) return null;
  const left = Math.min(Math.max(place.left, frame.left + 60), frame.right - 8);
  const right = Math.min(Math.max(place.right, left + 4), frame.right - 4);
  return { left: left - origin.left, right: right - origin.left, top: place.top - origin.top, bottom: place.bottom - origin.top };
}

function curve(tail, head) {
  const [x1, x2] = [(tail.left + tail.right) / 2, (head.left + head.right) / 2];
  if (Math.abs(tail.top - head.top) < 4) {
    const above = tail.top - 10 - Math.min(30, Math.abs(x2 - x1) / 8);
    return `M${x1} ${tail.top} C${x1} ${above} ${x2} ${above} ${x2} ${head.top - 1}`;
  }
  const down = head.top > tail.top;
  const [y1, y2] = down ? [tail.bottom, head.top - 1] : [tail.top, head.bottom + 1];
  const bend = Math.min(120, Math.max(14, Math.abs(y2 - y1) / 2)) * (down ? 1 : -1);
  return `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}

function draw() {
  if (!area) return;
  const picture = area.querySelector(".arrows");
  const origin = area.getBoundingClientRect();
  const shift = { left: origin.left - area.scrollLeft, top: origin.top - area.scrollTop };
  picture.setAttribute("width", area.clientWidth);
  picture.setAttribute("height", 1);
  picture.setAttribute("height", area.scrollHeight);
  // Only those of the step in focus: all arrows at once would hide the source.
  const leads = chosen === null ? [] : [...document.getElementById(chosen).querySelectorAll(".lead[data-tail]")];
  const pairs = new Set();
  const paths = leads.map((lead) => {
    // Several relations of one pair of spans have one arrow.
    const pair = `${lead.dataset.tail} ${lead.dataset.head}`;
    if (pairs.has(pair)) return null;
    pairs.add(pair);
    const [tail, head] = [box(lead.dataset.tail, shift), box(lead.dataset.head, shift)];
    if (!tail || !head) return null;
    const name = lead.querySelector(".unsure") ? "unsure" : "";
    return drawn("path", { d: curve(tail, head), class: name, "marker-end": "url(#arrow-head)" });
  });
  picture.replaceChildren(picture.firstElementChild, ...paths.filter(Boolean));
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function choose(step) {
  const id = step?.id ?? null;
  if (id === chosen) return;
  chosen = id;
  for (const each of document.querySelectorAll(".step.lit, .flow.lit")) each.classList.remove("lit");
  if (step) {
    step.classList.add("lit");
    const numbers = new Set([step.dataset.span]);
    for (const lead of step.querySelectorAll("[data-tail]")) numbers.add(lead.dataset.tail).add(lead.dataset.head);
    for (const number of numbers) for (const part of area.querySelectorAll(`.at-${number}`)) part.classList.add("lit");
  }
  redraw();
}

// Bring the span of a step into view inside of the excerpts, without moving the list.
function show(step) {
  const span = area.querySelector(`.at-${step.dataset.span}`);
  if (!span) return;
  const [place, frame] = [span.getBoundingClientRect(), area.getBoundingClientRect()];
  if (area.scrollHeight > area.clientHeight && (place.top < frame.top || place.bottom > frame.bottom)) {
    area.scrollTop += place.top - frame.top - frame.height / 3;
  }
}

async function explain(details) {
  const edge = details.dataset.edge;
  if (!details.open || !edge || details.dataset.loaded) return;
  details.dataset.loaded = "yes";
  try {
    const repository = location.pathname.split("/")[2];
    const answer = (await getJson(`/api/r/${repository}/edge`, { id: edge })).edge;
    const facts = { rule: answer.rule, origin: answer.origin, method: answer.method, evidence: answer.evidence,
      confidence: `${Math.round(answer.confidence * 100)} %`, alternatives: answer.amount };
    const rows = Object.entries(facts).filter(([, value]) => value != null && value !== "")
      .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]);
    details.append(element("p", {}, answer.detail), element("dl", {}, ...rows));
  } catch (problem) {
    details.append(element("p", { role: "alert" }, problem.message));
  }
  redraw();
}

if (area) {
  const marker = drawn("marker", { id: "arrow-head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
    markerUnits: "userSpaceOnUse", orient: "auto" });
  marker.append(drawn("path", { d: "M0 0 L8 4 L0 8 z" }));
  const definitions = drawn("defs", {});
  definitions.append(marker);
  const picture = drawn("svg", { class: "arrows", "aria-hidden": "true", focusable: "false" });
  picture.append(definitions);
  area.append(picture);
  for (const step of document.querySelectorAll(".step")) {
    step.addEventListener("mouseenter", () => choose(step));
    step.addEventListener("focusin", () => choose(step));
    step.addEventListener("click", () => show(step));
  }
  for (const line of area.querySelectorAll(".line[data-steps]")) {
    line.addEventListener("mouseenter", () => choose(document.getElementById(`step-${line.dataset.steps.split(" ")[0]}`)));
  }
  for (const details of document.querySelectorAll(".evidence")) details.addEventListener("toggle", () => explain(details));
  for (const source of area.querySelectorAll(".source")) source.addEventListener("scroll", redraw, { passive: true });
  new ResizeObserver(redraw).observe(area);
  document.fonts?.ready.then(redraw);
  const start = area.querySelector(".flow.start");
  if (start && !location.hash && area.scrollHeight > area.clientHeight) {
    area.scrollTop = start.getBoundingClientRect().top - area.getBoundingClientRect().top - area.clientHeight / 3;
  }
  choose(document.querySelector(".step"));
  redraw();
}
