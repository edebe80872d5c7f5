// Light, dark, or what the system says. The choice stays in this browser.

export type Theme = "auto" | "light" | "dark";
const KEY = "lamella.theme";

class ThemeStore {
  value = $state<Theme>(read());

  set(value: Theme): void {
    this.value = value;
    document.documentElement.dataset.theme = value;
    try {
      localStorage.setItem(KEY, value);
    } catch {
      // A browser without storage keeps the choice until the page is closed.
    }
  }

  next(): void {
    this.set(this.value === "auto" ? "light" : this.value === "light" ? "dark" : "auto");
  }
}

function read(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    if (value === "light" || value === "dark") return value;
  } catch {
    // As above.
  }
  return "auto";
}

export const theme = new ThemeStore();
document.documentElement.dataset.theme = theme.value;
