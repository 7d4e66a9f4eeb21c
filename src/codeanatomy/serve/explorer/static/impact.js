// Filter the tree of affected symbols, and open or close all of its branches.
for (const part of document.querySelectorAll(".impact")) {
  const tools = part.querySelector(".tools");
  if (!tools) continue;
  tools.hidden = false;
  const [filter, only] = [tools.querySelector(".filter"), tools.querySelector(".tests-only")];
  const branches = [...part.querySelectorAll(".tree li")].reverse();

  // A branch stays if it matches, or one below it does: the innermost are looked at first.
  function apply() {
    const text = filter.value.trim().toLowerCase();
    for (const branch of branches) {
      const own = branch.querySelector(":scope > .own");
      const matches = own && own.textContent.toLowerCase().includes(text) && (!only.checked || own.querySelector(".test"));
      branch.hidden = !matches && !branch.querySelector(":scope > details > ul > li:not([hidden])");
    }
    if (text || only.checked) setAll(true);
    for (const root of part.querySelectorAll(".tree .root")) root.hidden = !root.querySelector("li:not([hidden])");
  }

  function setAll(open) {
    for (const details of part.querySelectorAll(".tree details")) details.open = open;
  }

  filter.addEventListener("input", apply);
  only.addEventListener("change", apply);
  tools.querySelector(".open-all").addEventListener("click", () => setAll(true));
  tools.querySelector(".close-all").addEventListener("click", () => setAll(false));
}
