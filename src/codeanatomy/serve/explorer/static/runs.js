// Load a page again whose work was not ready in time.
const again = document.querySelector("[data-again]");
if (again) setTimeout(() => location.replace(again.href), 2000);
