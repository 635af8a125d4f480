// The switch between light, dark, and what the system says. theme.js has put the choice in force before the first paint.

const THEMES = { auto: "◐", light: "☀", dark: "☾" };

export function themeSwitch(button) {
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    choose(names[(names.indexOf(current()) + 1) % names.length]);
    name(button);
  });
  name(button);
}

const current = () => document.documentElement.dataset.theme ?? "auto";

function choose(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // Then it is kept until the page is left.
  }
}

function name(button) {
  button.textContent = THEMES[current()];
  button.title = button.ariaLabel = `Theme: ${current()}`;
}
