// Start.

if (data.kind === "gallery") renderGallery();
else if (data.kind === "robustness") renderRobustness();
else {
  data.runs.forEach((_, index) => state.chosen.add(index));
  renderReport();
}
window.ars = { duration, number, state }; // for tests
root.dataset.ready = "yes";
