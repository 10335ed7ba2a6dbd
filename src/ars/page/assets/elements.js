// Elements, buttons and colours. Content from files is inserted as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const root = document.documentElement;

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  const there = (child) => child !== null && child !== undefined && child !== false;
  element.append(...children.flat(3).filter(there));
  return element;
}

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

const s = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const colour = (index) => `var(--c${index % 8})`;

// Buttons, one of which is pressed; options are [value, text].
function choice(label, options, current, choose) {
  const buttons = options.map(([value, text]) => {
    const press = () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      choose(value);
    };
    const button = h("button", { type: "button", "aria-pressed": String(value === current), onclick: press }, text);
    return button;
  });
  return h("span", { class: "choice", role: "group", "aria-label": label }, buttons);
}

const section = (title, controls, ...content) =>
  h("section", { "aria-label": title }, h("div", { class: "head" }, h("h2", {}, title), controls), ...content);

const note = (...content) => h("p", { class: "note" }, ...content);

const footer = () =>
  h("footer", {}, `Made by ars ${data.version}. Augmented Random Search, Mania, Guy, Recht 2018.`);

// -- dark and light: the system's choice, until the user makes one ----------------------------------------------------

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let ownTheme = null;
const themeButton = h("button", { type: "button", class: "theme", onclick: () => {
  ownTheme = root.dataset.theme === "dark" ? "light" : "dark";
  setTheme();
} });

function setTheme() {
  root.dataset.theme = ownTheme ?? (prefersDark.matches ? "dark" : "light");
  themeButton.textContent = root.dataset.theme === "dark" ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", `Switch to ${themeButton.textContent.toLowerCase()} colours`);
}

prefersDark.addEventListener("change", setTheme);
setTheme();

// -- drawings: functions that draw for the available width ------------------------------------------------------------

const drawings = new Set();
let widthBefore = innerWidth;

addEventListener("resize", () => {
  if (innerWidth === widthBefore) return; // a phone's address bar changes the height only
  widthBefore = innerWidth;
  for (const draw of drawings) draw();
});

function show(content, draws) {
  drawings.clear();
  page.replaceChildren(...content.filter(Boolean));
  for (const draw of draws) {
    drawings.add(draw);
    draw();
  }
}
