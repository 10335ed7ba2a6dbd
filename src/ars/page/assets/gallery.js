// The gallery: films side by side.

function renderGallery() {
  const draws = [];
  const cards = data.policies.map(({ name, facts, gait }) => {
    if (!gait.frames) return section(name, [], h("p", { class: "note why-not" }, `No film: ${gait.why_not}`));
    const [film, strip] = filmAndDiagram(gait, `Film of ${name}`, draws);
    return section(name, [], film, note([...facts, gait.summary].join(" · ")), strip);
  });
  document.title = "ARS gallery";
  const count = h("p", { class: "faint" }, `${cards.length} policies`);
  const header = h("header", {}, h("h1", {}, "Gallery"), count, themeButton);
  show([header, h("div", { class: "gallery" }, cards), footer()], draws);
}
