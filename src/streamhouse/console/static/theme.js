// Before the first paint, so that nobody who chose the dark sees a flash of the light.
"use strict";
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing for this site: the system's choice it is.
}
