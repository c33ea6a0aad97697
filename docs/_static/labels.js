// The theme's toggles of the sidebar are icons without a name: give them one for screen readers.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll(".bd-sidebar-primary summary")) {
    if (!summary.textContent.trim()) summary.setAttribute("aria-label", "Pages of this section");
  }
});
