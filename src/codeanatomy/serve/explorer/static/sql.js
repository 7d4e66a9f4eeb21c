// The SQL page: colours, completion and checks in the editor; results without loading the page again; sorting.
import { element } from "/static/page.js";

const form = document.getElementById("statement");
const editor = document.getElementById("editor");
const painted = document.getElementById("painted");
const list = document.getElementById("completions");
const problemList = document.getElementById("problems");
const progress = document.getElementById("progress");
const CHECK_DELAY = 350;
const MAX_COMPLETIONS = 60;
const LONGEST_LINK = 6000;

const functions = new Set(editor.dataset.functions.split(" "));
const keywords = new Set(editor.dataset.keywords.split(" "));
const views = new Map();
for (const view of document.querySelectorAll("[data-view]")) {
  views.set(view.dataset.view, [...view.querySelectorAll("[data-column]")].map((each) => each.dataset.column));
}

// Colours

const TOKEN = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^'\\]|\\[\s\S]|'')*(?:'|$)|"(?:[^"\\]|\\[\s\S])*(?:"|$))|(\b\d+(?:\.\d+)?\b)|([A-Za-z_]\w*)/g;
let problemSpans = [];

function classOf(match) {
  if (match[1]) return "comment";
  if (match[2]) return "string";
  if (match[3]) return "amount";
  const name = match[4];
  if (keywords.has(name.toUpperCase())) return "keyword";
  if (functions.has(name.toLowerCase())) return "function";
  return views.has(name.toLowerCase()) ? "name" : null;
}

function paint() {
  const text = editor.value;
  const spans = [];
  for (const match of text.matchAll(TOKEN)) {
    const kind = classOf(match);
    if (kind) spans.push([match.index, match.index + match[0].length, kind]);
  }
  const cuts = new Set([0, text.length]);
  for (const [start, end] of [...spans, ...problemSpans]) cuts.add(Math.min(start, text.length)).add(Math.min(end, text.length));
  const places = [...cuts].sort((a, b) => a - b);
  const parts = [];
  let next = 0;
  for (let i = 0; i + 1 < places.length; i++) {
    const [start, end] = [places[i], places[i + 1]];
    while (next < spans.length && spans[next][1] <= start) next++;
    const kind = next < spans.length && spans[next][0] <= start ? spans[next][2] : "";
    const problem = problemSpans.some(([from, to]) => from <= start && end <= to) ? "problem" : "";
    const classes = [kind, problem].filter(Boolean).join(" ");
    const part = text.slice(start, end);
    parts.push(classes ? element("span", { class: classes }, part) : document.createTextNode(part));
  }
  // A last line without characters has a height only if something follows it.
  painted.replaceChildren(...parts, document.createTextNode("\u200b"));
}

// Checks

let checkTimer = 0;
let checking = null;

// Columns of the server count characters, offsets of this page count UTF-16 units.
function offsetOf(lines, line, column) {
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
}

function showProblems(diagnostics) {
  const lines = editor.value.split("\n");
  problemSpans = [];
  const items = diagnostics.map((each) => {
    const texts = [each.suggestion ? element("span", {}, " ", each.suggestion) : null];
    if (!each.line) return element("li", {}, element("strong", {}, each.message), ...texts);
    const start = offsetOf(lines, each.line, each.column);
    const end = Math.max(start + 1, offsetOf(lines, each.line, each.end ?? each.column + 1));
    problemSpans.push([start, end]);
    const button = element("button", { type: "button" }, `Line ${each.line}, column ${each.column}: ${each.message}`);
    button.addEventListener("click", () => {
      editor.focus();
      editor.setSelectionRange(start, end);
    });
    return element("li", {}, button, ...texts);
  });
  problemList.replaceChildren(...(items.length ? [element("ul", {}, ...items)] : []));
  paint();
}

// A result names its run, so it may be of a newer one than the page.
function post(address, values, signal) {
  return fetch(address, { method: "POST", body: new URLSearchParams(values), signal });
}

async function check() {
  checking?.abort();
  const text = editor.value;
  if (!text.trim() || text.length > Number(editor.dataset.checked)) return showProblems([]);
  checking = new AbortController();
  try {
    const response = await post("/api/sql/check", { q: text }, checking.signal);
    if (response.ok && editor.value === text) showProblems((await response.json()).diagnostics);
  } catch (problem) {
    if (problem.name !== "AbortError") progress.textContent = "The statement could not be checked.";
  }
}

function changed() {
  problemSpans = [];
  paint();
  clearTimeout(checkTimer);
  checkTimer = setTimeout(check, CHECK_DELAY);
}

// Completion

let chosen = -1;
let typed = "";

// Views by the names they have in the statement: `FROM calls AS c` makes c the columns of calls.
function relations(text) {
  const known = new Map();
  for (const match of text.matchAll(/\b(?:from|join)\s+([a-z_]\w*)(?:\s+(?:as\s+)?([a-z_]\w*))?/gi)) {
    const columns = views.get(match[1].toLowerCase());
    if (!columns) continue;
    known.set(match[1].toLowerCase(), columns);
    if (match[2] && !keywords.has(match[2].toUpperCase())) known.set(match[2].toLowerCase(), columns);
  }
  return known;
}

function candidates() {
  const text = editor.value;
  const before = text.slice(0, editor.selectionStart);
  const [, owner, start] = /(?:([A-Za-z_]\w*)\.)?([A-Za-z_]?\w*)$/.exec(before);
  typed = start;
  const known = relations(text);
  const rows = new Map();
  const add = (name, kind) => { if (!rows.has(name)) rows.set(name, kind); };
  if (owner) {
    for (const column of known.get(owner.toLowerCase()) ?? views.get(owner.toLowerCase()) ?? []) add(column, "column");
  } else {
    const wantsView = /\b(from|join)\s+\w*$/i.test(before);
    // Before a view is named, columns of all views.
    if (!wantsView) for (const [view, columns] of known.size ? known : views) for (const column of columns) add(column, `column of ${view}`);
    for (const view of views.keys()) add(view, "view");
    if (!wantsView) {
      for (const name of keywords) add(name, "keyword");
      for (const name of functions) add(name, "function");
    }
  }
  const wanted = start.toLowerCase();
  return [...rows]
    .filter(([name]) => name.toLowerCase().includes(wanted) && name.toLowerCase() !== wanted)
    .sort(([a], [b]) => b.toLowerCase().startsWith(wanted) - a.toLowerCase().startsWith(wanted))
    .slice(0, MAX_COMPLETIONS);
}

function caretPlace() {
  const walker = document.createTreeWalker(painted, NodeFilter.SHOW_TEXT);
  let left = editor.selectionStart - typed.length;
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (left <= node.length) {
      range.setStart(node, left);
      range.setEnd(node, Math.min(node.length, left + 1));
      break;
    }
    left -= node.length;
  }
  const [caret, box] = [range.getBoundingClientRect(), editor.getBoundingClientRect()];
  return [caret.left - box.left, caret.bottom - box.top];
}

function openList(preselect) {
  const rows = candidates();
  if (!rows.length) return closeList();
  const items = rows.map(([name, kind], number) => {
    const item = element("li", { role: "option", id: `completion-${number}`, "aria-selected": "false" }, name, element("span", {}, kind));
    item.dataset.name = name;
    item.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      insert(name);
    });
    return item;
  });
  list.replaceChildren(...items);
  list.hidden = false;
  const [left, top] = caretPlace();
  list.style.setProperty("left", `${Math.max(0, Math.min(left, editor.clientWidth - list.offsetWidth))}px`);
  list.style.setProperty("top", `${top + 4}px`);
  editor.setAttribute("aria-controls", "completions");
  choose(preselect ? 0 : -1);
  progress.textContent = `${rows.length} completion${rows.length > 1 ? "s" : ""}`;
}

function closeList() {
  if (!list.hidden) progress.textContent = "";
  list.hidden = true;
  chosen = -1;
  editor.removeAttribute("aria-activedescendant");
  editor.removeAttribute("aria-controls");
}

function choose(number) {
  const items = [...list.children];
  chosen = number < 0 ? number : (number + items.length) % items.length;
  items.forEach((item, each) => item.setAttribute("aria-selected", String(each === chosen)));
  if (chosen < 0) return editor.removeAttribute("aria-activedescendant");
  items[chosen].scrollIntoView({ block: "nearest" });
  editor.setAttribute("aria-activedescendant", items[chosen].id);
}

function insert(name) {
  const end = editor.selectionStart;
  closeList();
  editor.focus();
  editor.setSelectionRange(end - typed.length, end);
  // Keeps the editor's undo; browsers without it get the plain form.
  if (!document.execCommand("insertText", false, name)) editor.setRangeText(name, end - typed.length, end, "end");
  closeList();
  changed();
}

editor.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
    event.preventDefault();
    closeList();
    form.requestSubmit();
  } else if (event.ctrlKey && event.key === " ") {
    event.preventDefault();
    openList(true);
  } else if (list.hidden || event.isComposing) {
    return;
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const step = event.key === "ArrowDown" ? 1 : -1;
    choose(chosen < 0 ? (step > 0 ? 0 : list.children.length - 1) : chosen + step + (chosen + step < 0 ? list.children.length : 0));
  } else if (event.key === "Escape") {
    event.preventDefault();
    closeList();
  } else if ((event.key === "Enter" && chosen >= 0) || (event.key === "Tab" && !event.shiftKey)) {
    event.preventDefault();
    insert(list.children[Math.max(chosen, 0)].dataset.name);
  } else if (event.key === "ArrowLeft" || event.key === "ArrowRight" || event.key === "Home" || event.key === "End") {
    closeList();
  }
});
editor.addEventListener("input", (event) => {
  changed();
  const before = editor.value.slice(0, editor.selectionStart);
  const isTyping = event.inputType === "insertText" || (event.inputType?.startsWith("delete") && !list.hidden);
  if (isTyping && /([A-Za-z_]\w+|[A-Za-z_]\w*\.\w*)$/.test(before)) openList(false);
  else closeList();
});
editor.addEventListener("blur", closeList);

// Running

let running = null;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  running?.abort();
  running = new AbortController();
  const own = running;
  clearTimeout(checkTimer);
  const result = document.getElementById("result");
  result.classList.add("busy");
  progress.textContent = "Running...";
  try {
    const response = await post(form.action, new FormData(form), own.signal);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (own !== running) return;
    show(page);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    result.classList.remove("busy");
    progress.textContent = "The server does not answer.";
  }
});

// The server has made the page of the result; its parts take the place of those shown.
function show(page) {
  const result = document.getElementById("result");
  result.replaceWith(document.importNode(page.getElementById("result") ?? result, true));
  problemList.replaceChildren(...document.importNode(page.getElementById("problems") ?? problemList, true).childNodes);
  const summary = document.getElementById("result-summary");
  progress.textContent = summary ? summary.querySelector("strong").textContent : "It has not been run.";
  const address = new URL(location);
  address.searchParams.set("q", editor.value);
  if (address.search.length < LONGEST_LINK) history.replaceState(null, "", address);
  markProblems();
  makeSortable();
}

// Underline the places of the problems that the server has listed.
function markProblems() {
  const lines = editor.value.split("\n");
  problemSpans = [...problemList.querySelectorAll("[data-line]")].map(({ dataset }) => [
    offsetOf(lines, Number(dataset.line), Number(dataset.column)),
    offsetOf(lines, Number(dataset.line), Number(dataset.end)),
  ]);
  paint();
}

// Sorting

function valueOf(row, column, isNumber) {
  const cell = row.cells[column];
  if (cell.classList.contains("null")) return null;
  return isNumber ? Number.parseFloat(cell.textContent) : cell.textContent;
}

const collator = new Intl.Collator(undefined, { numeric: true });

function sortBy(table, header, column) {
  const isAscending = header.getAttribute("aria-sort") !== "ascending";
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const isNumber = rows.some((row) => row.cells[column].classList.contains("number"));
  const keys = new Map(rows.map((row) => [row, valueOf(row, column, isNumber)]));
  const sign = isAscending ? 1 : -1;
  rows.sort((a, b) => {
    const [first, second] = [keys.get(a), keys.get(b)];
    // Null is last in both directions.
    if (first === null || second === null) return (first === null) - (second === null);
    return sign * (isNumber ? first - second : collator.compare(first, second));
  });
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
  body.append(...rows);
}

function makeSortable() {
  const table = document.getElementById("rows");
  if (!table || table.dataset.sortable) return;
  table.dataset.sortable = "yes";
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const button = element("button", { type: "button" }, header.textContent);
    button.addEventListener("click", () => sortBy(table, header, column));
    header.replaceChildren(button);
  });
}

editor.parentElement.classList.add("painting");
editor.setAttribute("aria-autocomplete", "list");
editor.setAttribute("aria-haspopup", "listbox");
markProblems();
makeSortable();
if (editor.value && !document.getElementById("rows") && !problemList.children.length) check();
