// Cards beside names, the right part of a long file for #L, and parts of a symbol's page that take longer.
import { element, getJson, pageLink } from "./page.js";

const OPEN_DELAY = 250;
const CLOSE_DELAY = 200;
let card = null;
let owner = null;
let timer = null;
let request = null;

// Mark the definition of the outline that the line in the address belongs to.
function markOutline() {
  const outline = document.querySelector(".outline");
  const chosen = Number(/^#L(\d+)/.exec(location.hash)?.[1] ?? 0);
  if (!outline || !chosen) return;
  let current = null;
  for (const link of outline.querySelectorAll("a")) {
    link.removeAttribute("aria-current");
    const first = Number(/^#L(\d+)$/.exec(link.hash)?.[1] ?? Infinity);
    if (first <= chosen && chosen <= Number(link.dataset.last)) current = link;
  }
  if (!current) return;
  current.setAttribute("aria-current", "true");
  const side = outline.parentElement;
  side.scrollTop = current.offsetTop - side.offsetTop - side.clientHeight / 3;
}

// A line that is on another part of the file: ask for that part.
function showLine() {
  const match = /^#L(\d+)/.exec(location.hash);
  if (!match) return;
  const line = document.getElementById(`L${match[1]}`);
  const parts = document.querySelector(".parts");
  if (line || !parts) return;
  const address = new URL(location.href);
  if (address.searchParams.get("line") === match[1]) return;
  address.searchParams.set("line", match[1]);
  location.replace(address);
}

function close() {
  clearTimeout(timer);
  request?.abort();
  card?.remove();
  if (owner) {
    owner.classList.remove("open");
    owner.removeAttribute("aria-describedby");
    if (owner.dataset.title) owner.title = owner.dataset.title;
  }
  card = owner = null;
}

function closeSoon() {
  clearTimeout(timer);
  timer = setTimeout(close, CLOSE_DELAY);
}

function place() {
  const rectangle = owner.getBoundingClientRect();
  const below = rectangle.bottom + card.offsetHeight + 8 < innerHeight || rectangle.top < card.offsetHeight + 8;
  const top = below ? rectangle.bottom + 4 : rectangle.top - card.offsetHeight - 4;
  const left = Math.max(8, Math.min(rectangle.left, document.documentElement.clientWidth - card.offsetWidth - 8));
  card.style.setProperty("top", `${top + scrollY}px`);
  card.style.setProperty("left", `${left + scrollX}px`);
}

function rowOf(row) {
  const facts = [row.confidence < 1 ? `${row.sure} sure` : null, row.method ? `by ${row.method}` : null].filter(Boolean);
  return element("div", { class: "row" },
    element("p", {}, element("span", { class: "kind" }, row.kind), " ", element("a", { href: pageLink(row.page) }, row.symbol)),
    row.type ? element("p", {}, "type ", element("code", {}, row.type)) : null,
    row.doc ? element("p", { class: "muted" }, row.doc) : null,
    row.place || facts.length ? element("p", {},
      row.place ? element("a", { class: "place", href: pageLink(row.link) }, row.place) : "", " ",
      element("span", { class: "muted" }, facts.join(", "))) : null,
    element("p", { class: "actions" }, ...row.actions.map((action) => element("a", { href: pageLink(action.link) }, action.text))));
}

function contentOf(answer) {
  const type = answer.type ? element("p", {}, "type ", element("code", {}, answer.type), " by the type checker") : null;
  if (answer.rows.length === 0) {
    const reason = answer.reason ? `: ${answer.reason.replaceAll("_", " ")}` : "";
    return [element("p", {}, `Not resolved${reason}.`), type].filter(Boolean);
  }
  const more = answer.total - answer.rows.length;
  return [
    answer.total > 1 ? element("p", {}, `One of ${answer.total} candidates:`) : null,
    type,
    ...answer.rows.map(rowOf),
    more > 0 ? element("p", { class: "muted" }, `${more} more`) : null,
  ].filter(Boolean);
}

async function open(name) {
  close();
  const box = name.closest("[data-api]");
  owner = name;
  owner.classList.add("open");
  request = new AbortController();
  const { at, id } = name.dataset;
  const path = name.closest("[data-path]")?.dataset.path;
  let content;
  try {
    const answer = await getJson(box.dataset.api, id ? { id } : { path, at }, { signal: request.signal });
    content = contentOf(answer);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    content = [element("p", {}, `This name cannot be shown: ${problem.message}`)];
  }
  if (owner !== name) return;
  if (name.title) {
    name.dataset.title = name.title;
    name.removeAttribute("title");
  }
  card = element("div", { class: "card", id: "card", role: "group", "aria-label": "About this name" }, ...content);
  card.addEventListener("mouseenter", () => clearTimeout(timer));
  card.addEventListener("mouseleave", closeSoon);
  card.addEventListener("focusout", (event) => { if (!card?.contains(event.relatedTarget)) closeSoon(); });
  card.addEventListener("focusin", () => clearTimeout(timer));
  document.getElementById("main").append(card);
  owner.setAttribute("aria-describedby", "card");
  place();
}

function soon(name) {
  clearTimeout(timer);
  if (owner === name && card) return;
  timer = setTimeout(() => open(name), OPEN_DELAY);
}

const nameOf = (event) => event.target.closest?.("[data-api] a.i");

document.addEventListener("mouseover", (event) => { const name = nameOf(event); if (name) soon(name); });
document.addEventListener("mouseout", (event) => { if (nameOf(event)) closeSoon(); });
document.addEventListener("focusin", (event) => { const name = nameOf(event); if (name?.matches(":focus-visible")) soon(name); });
document.addEventListener("focusout", (event) => { if (nameOf(event) && !card?.contains(event.relatedTarget)) closeSoon(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && card) {
    const back = owner;
    const inside = card.contains(document.activeElement);
    close();
    if (inside) back.focus();
  } else if (event.key === "ArrowDown" && card && document.activeElement === owner) {
    // Into the card: its links are at the end of the page.
    event.preventDefault();
    card.querySelector("a")?.focus();
  }
});
addEventListener("resize", () => { if (card) place(); });
addEventListener("hashchange", () => { showLine(); markOutline(); });
showLine();
markOutline();

// Parts that take longer: a link without JavaScript, fetched after the first paint with it.
async function load(part) {
  part.setAttribute("aria-busy", "true");
  const link = part.querySelector("a");
  try {
    const answer = await getJson(part.dataset.load);
    const items = answer.rows.map((row) => element("li", {},
      element("a", { class: "symbol", href: pageLink(row.page) }, row.symbol), " ",
      element("a", { class: "place", href: pageLink(row.link) }, row.place)));
    const more = answer.total - answer.rows.length;
    part.replaceChildren(
      ...(items.length ? [element("ul", { class: "rows" }, ...items)] : [element("p", { class: "muted" }, "None.")]),
      ...(more > 0 ? [element("p", {}, element("a", { href: link.href }, `${more.toLocaleString("en")} more`))] : []));
    const count = document.getElementById(part.dataset.count);
    if (count) count.textContent = answer.total.toLocaleString("en");
  } catch (problem) {
    part.append(element("p", { class: "muted" }, `This cannot be shown: ${problem.message}`));
  }
  part.removeAttribute("aria-busy");
}
requestAnimationFrame(() => setTimeout(() => document.querySelectorAll("[data-load]").forEach(load), 0));
