// Switch between light and dark; the choice is kept in this browser.
const KEY = "codeanatomy-theme";
const root = document.documentElement;
const button = document.getElementById("theme");
const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function stored() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

const chosen = stored();
if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

function show() {
  if (!button) return;
  button.hidden = false;
  button.textContent = dark() ? "Light" : "Dark";
  button.setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours");
}

button?.addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* private windows keep nothing */ }
  show();
});
show();
