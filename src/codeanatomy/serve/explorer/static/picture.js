// Pictures: zoom and pan, expand boxes without a reload, show what is connected, join blocks with lines of source.
import { pageLink, run } from "./page.js";

const MIN_SCALE = 0.05;
const MAX_SCALE = 4;
// Boxes are drawn at least this large at first: smaller text cannot be read.
const READABLE_SCALE = 0.55;
const view = document.getElementById("view");
let frame = null;
let svg = null;
// What is seen: the upper left corner in the picture, and pixels of the screen for each of its units.
let seen = { x: 0, y: 0, scale: 1 };
let size = { width: 1, height: 1 };
// The picture in the address, as far as it was loaded.
let loaded = location.search;

function show() {
  const { clientWidth, clientHeight } = frame;
  svg.setAttribute("viewBox", `${seen.x} ${seen.y} ${clientWidth / seen.scale} ${clientHeight / seen.scale}`);
}

function limited(scale) {
  return Math.min(MAX_SCALE, Math.max(MIN_SCALE, scale));
}

// Zoom around a point of the screen, which stays where it is.
function zoom(factor, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
  const scale = limited(seen.scale * factor);
  seen = { x: seen.x + x / seen.scale - x / scale, y: seen.y + y / seen.scale - y / scale, scale };
  show();
}

function move(x, y) {
  seen = { ...seen, x: seen.x + x / seen.scale, y: seen.y + y / seen.scale };
  show();
}

function fit(least = MIN_SCALE) {
  const whole = Math.min(frame.clientWidth / size.width, frame.clientHeight / size.height, 1.25);
  const wide = least > MIN_SCALE ? Math.min(frame.clientWidth / size.width, 0.75) : 0;
  const scale = limited(Math.max(whole, wide, least));
  const focus = place(svg.querySelector(".box.focus, .box.entry") ?? svg.querySelector(".box"));
  const centre = (length, shown, at) => (length <= shown ? (length - shown) / 2 : Math.min(Math.max(at - shown / 2, 0), length - shown));
  seen = {
    x: centre(size.width, frame.clientWidth / scale, focus.x),
    y: centre(size.height, frame.clientHeight / scale, focus.y),
    scale,
  };
  show();
}

// The middle of a box in the picture.
function place(box) {
  if (!box) return { x: size.width / 2, y: size.height / 2 };
  const [, x, y] = box.getAttribute("transform").match(/translate\(([-\d.e]+) ([-\d.e]+)\)/);
  const shape = box.querySelector(".shape");
  return { x: Number(x) + shape.width.baseVal.value / 2, y: Number(y) + shape.height.baseVal.value / 2 };
}

function boxOf(key) {
  return [...svg.querySelectorAll(".box")].find((each) => each.dataset.key === key);
}

function trace(box) {
  svg.classList.toggle("tracing", box != null);
  for (const each of svg.querySelectorAll(".near")) each.classList.remove("near");
  if (!box) return;
  const near = new Set([box.dataset.key]);
  for (const arrow of svg.querySelectorAll(".arrow[data-from]")) {
    const { from, to } = arrow.dataset;
    if (from !== box.dataset.key && to !== box.dataset.key) continue;
    arrow.classList.add("near");
    near.add(from).add(to);
  }
  for (const each of svg.querySelectorAll(".box")) each.classList.toggle("near", near.has(each.dataset.key));
}

function linesOf(box) {
  const lines = [];
  for (const part of (box.dataset.lines ?? "").split(" ").filter(Boolean)) {
    const [first, last = first] = part.split("-").map(Number);
    for (let line = first; line <= last; line += 1) lines.push(line);
  }
  return lines;
}

// Highlight blocks and lines together.
function light(boxes, lines) {
  for (const each of view.querySelectorAll(".lit")) each.classList.remove("lit");
  for (const box of boxes) box.classList.add("lit");
  for (const line of lines) document.getElementById(`L${line}`)?.classList.add("lit");
}

function scrollTo(line) {
  const source = view.querySelector(".source");
  const item = line == null ? null : document.getElementById(`L${line}`);
  if (!item || !source) return;
  const top = item.offsetTop - source.offsetTop;
  if (top < source.scrollTop + 40 || top > source.scrollTop + source.clientHeight - 40) {
    source.scrollTo({ top: top - source.clientHeight / 3 });
  }
}

function centre(box) {
  const at = place(box);
  const shown = { width: frame.clientWidth / seen.scale, height: frame.clientHeight / seen.scale };
  const inside = at.x > seen.x && at.x < seen.x + shown.width && at.y > seen.y && at.y < seen.y + shown.height;
  if (inside) return;
  seen = { ...seen, x: at.x - shown.width / 2, y: at.y - shown.height / 2 };
  show();
}

// Put another picture in place of this one; the box that was clicked stays where it is.
async function replace(link, key, push = true) {
  frame?.classList.add("busy");
  const address = new URL(link, location.origin);
  if (!address.searchParams.has("as-of")) address.searchParams.set("as-of", run);
  try {
    const response = await fetch(address);
    if (!response.ok) throw new Error(response.statusText);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const next = page.getElementById("view");
    if (!next?.querySelector("svg")) throw new Error("no picture");
    for (const each of next.querySelectorAll("a[href^='/']")) each.setAttribute("href", pageLink(each.getAttribute("href")));
    const before = { seen, at: place(boxOf(key)) };
    const focused = document.activeElement?.closest?.(".box")?.dataset.key;
    view.className = next.className;
    view.replaceChildren(...[...next.childNodes].map((each) => document.importNode(each, true)));
    document.title = page.title;
    if (push) history.pushState({}, "", pageLink(address.href));
    loaded = location.search;
    start(false);
    const box = boxOf(key);
    const after = place(box ?? svg.querySelector(".box.focus"));
    seen = { ...before.seen, x: before.seen.x + after.x - before.at.x, y: before.seen.y + after.y - before.at.y };
    if (box) show();
    else fit(READABLE_SCALE);
    if (focused) boxOf(focused)?.querySelector("a")?.focus({ preventScroll: true });
  } catch {
    location.assign(link);
  }
}

function pointers() {
  const down = new Map();
  let moved = false;
  const distance = () => {
    const [a, b] = [...down.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  frame.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (down.size === 1) moved = false;
  });
  frame.addEventListener("pointermove", (event) => {
    const last = down.get(event.pointerId);
    if (!last) return;
    const far = Math.hypot(event.clientX - last.x, event.clientY - last.y) > 3;
    if (!moved && !far) return;
    if (!moved) frame.setPointerCapture(event.pointerId);
    moved = true;
    frame.classList.add("dragging");
    const before = down.size === 2 ? distance() : 0;
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (down.size === 2) {
      const box = frame.getBoundingClientRect();
      const [a, b] = [...down.values()];
      zoom(distance() / before, (a.x + b.x) / 2 - box.left, (a.y + b.y) / 2 - box.top);
    } else if (down.size === 1) {
      move(last.x - event.clientX, last.y - event.clientY);
    }
  });
  for (const name of ["pointerup", "pointercancel"]) {
    frame.addEventListener(name, (event) => {
      down.delete(event.pointerId);
      frame.classList.remove("dragging");
    });
  }
  frame.addEventListener("dragstart", (event) => event.preventDefault());
  // A drag that ends on a box must not open it.
  frame.addEventListener("click", (event) => {
    if (moved) {
      event.preventDefault();
      event.stopPropagation();
      moved = false;
    }
  }, true);
  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = frame.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
}

const KEYS = {
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(),
  ArrowLeft: () => move(-60, 0), ArrowRight: () => move(60, 0), ArrowUp: () => move(0, -60), ArrowDown: () => move(0, 60),
};

function listen() {
  pointers();
  frame.addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  const enter = (event) => {
    const box = event.target.closest?.(".box");
    if (!box) return;
    trace(box);
    if (!box.dataset.lines) return;
    light([box], linesOf(box));
    scrollTo(linesOf(box)[0]);
  };
  const leave = (event) => {
    if (event.target.closest?.(".box") && !event.relatedTarget?.closest?.(".box")) trace(null);
  };
  frame.addEventListener("pointerover", enter);
  frame.addEventListener("pointerout", leave);
  frame.addEventListener("focusin", (event) => {
    enter(event);
    const box = event.target.closest?.(".box");
    if (box && event.target.matches(":focus-visible")) centre(box);
  });
  frame.addEventListener("focusout", leave);
}

function sourceLines() {
  const source = view.querySelector(".source");
  const choose = (event, reveal) => {
    const line = Number(event.target.closest?.("li")?.dataset.line);
    if (!line) return;
    const boxes = [...svg.querySelectorAll(".box[data-lines]")].filter((box) => linesOf(box).includes(line));
    light(boxes, [line]);
    if (reveal && boxes.length) centre(boxes[0]);
  };
  source?.addEventListener("pointerover", (event) => choose(event, false));
  source?.addEventListener("focusin", (event) => choose(event, true));
  source?.addEventListener("click", (event) => {
    const number = event.target.closest?.(".number");
    if (number && !event.ctrlKey && !event.metaKey) {
      // The line is in the address, but nothing moves: the pointer would be over another line.
      event.preventDefault();
      history.replaceState({}, "", number.getAttribute("href"));
    }
    choose(event, true);
  });
  // One line is in the order of the tabulator; arrows go to the others.
  source?.addEventListener("keydown", (event) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const next = step && event.target.closest("li")?.[step]?.querySelector(".number");
    if (!next) return;
    event.preventDefault();
    event.target.closest("li").querySelector(".number").tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

function start(first = true) {
  frame = document.getElementById("picture");
  svg = frame?.querySelector("svg");
  if (!svg) return;
  size = { width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height };
  frame.classList.add("live");
  view.querySelector(".zoom").hidden = false;
  // The frame is not higher than needed.
  const scale = Math.min(1.25, Math.max(READABLE_SCALE, frame.clientWidth / size.width));
  frame.style.setProperty("max-height", `${Math.max(260, size.height * scale + 24)}px`);
  listen();
  sourceLines();
  if (first) fit(READABLE_SCALE);
}

view?.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-zoom]");
  if (button) return { in: () => zoom(1.25), out: () => zoom(0.8), fit: () => fit() }[button.dataset.zoom]();
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return undefined;
  const link = event.target.closest("a");
  const box = link?.closest(".box");
  const href = link?.getAttribute("href");
  if (!href) return undefined;
  if (href.startsWith("#L") && box) {
    event.preventDefault();
    light([box], linesOf(box));
    return scrollTo(linesOf(box)[0]);
  }
  const grows = link.closest(".expand, .frame") || box?.classList.contains("grows") || link.classList.contains("grows");
  if (!grows) return undefined;
  event.preventDefault();
  return replace(href, box?.dataset.key);
});
// Links to lines of this page are no other picture.
addEventListener("popstate", () => {
  if (location.search !== loaded) replace(location.pathname + location.search, null, false);
});
addEventListener("resize", () => svg && show());
start();
