// Suggestions while a visitor types in the search box: "/" focuses it, arrows choose, Enter opens, Escape closes.
import { element, getJson, pageLink } from "./page.js";

const box = document.getElementById("search");
const list = document.getElementById("suggestions");
let rows = [];
let selected = -1;
let waiting = null;

function close() {
  list.hidden = true;
  box.setAttribute("aria-expanded", "false");
  box.removeAttribute("aria-activedescendant");
  selected = -1;
}

function select(index) {
  selected = index;
  [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
  if (index < 0) return box.removeAttribute("aria-activedescendant");
  box.setAttribute("aria-activedescendant", `suggestion-${index}`);
  list.children[index].scrollIntoView({ block: "nearest" });
}

function show(answer) {
  rows = answer.rows;
  list.replaceChildren(...rows.map((row, at) => {
    const item = element("li", { id: `suggestion-${at}`, role: "option", "aria-selected": "false" },
      element("span", {}, row.symbol), " ", element("span", { class: "kind" }, row.kind), " ",
      element("span", { class: "place" }, `${row.repo_id} ${row.place}`));
    item.addEventListener("mousedown", (event) => { event.preventDefault(); location.assign(pageLink(row.link)); });
    return item;
  }));
  list.hidden = rows.length === 0;
  box.setAttribute("aria-expanded", String(rows.length > 0));
  select(-1);
}

async function ask() {
  waiting?.abort();
  const text = box.value.trim();
  if (!text) return close();
  waiting = new AbortController();
  try {
    show(await getJson("/api/suggest", { q: text }, { signal: waiting.signal }));
  } catch (problem) {
    if (problem.name !== "AbortError") close();
  }
}

box.addEventListener("input", ask);
box.addEventListener("blur", close);
box.addEventListener("keydown", (event) => {
  if (list.hidden) return;
  // The first Escape closes the list; the browser's own would clear the box.
  if (event.key === "Escape") { event.preventDefault(); return close(); }
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const step = event.key === "ArrowDown" ? 1 : -1;
    select((selected + step + rows.length + (selected < 0 && step < 0 ? 1 : 0)) % rows.length);
  } else if (event.key === "Enter" && selected >= 0) {
    event.preventDefault();
    location.assign(pageLink(rows[selected].link));
  }
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});
