// What several modules need: JSON of this page's run, and elements made of text (never of HTML).

export const run = document.body.dataset.run;

// Fetch JSON below /api/ for the run that this page shows, so that a page never mixes two runs.
export async function getJson(path, values = {}, options = {}) {
  const address = new URL(path, location.origin);
  for (const [name, value] of Object.entries(values)) if (value != null) address.searchParams.set(name, value);
  if (!address.searchParams.has("as-of")) address.searchParams.set("as-of", run);
  const response = await fetch(address, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error ?? response.statusText);
  return answer;
}

// element("a", {href: "/x", class: "kind"}, "text", childElement)
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value != null) made.setAttribute(key, value);
  made.append(...children.filter((child) => child != null));
  return made;
}

// Links of a page without a chosen run must not get one from answers that were fetched by run id.
export function pageLink(link) {
  const address = new URL(link, location.origin);
  if (!document.body.dataset.asOf) address.searchParams.delete("as-of");
  return address.pathname + address.search + address.hash;
}
