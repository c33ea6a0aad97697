document.addEventListener("DOMContentLoaded", () => {
  // The theme's toggles of the sidebar are icons without a name: give them one for screen readers.
  for (const summary of document.querySelectorAll(".bd-sidebar-primary summary")) {
    if (!summary.textContent.trim()) summary.setAttribute("aria-label", "Pages of this section");
  }
  // What an entry of the index leads to is empty, and Sphinx fails on it: summarise its page.
  if (typeof Search !== "undefined") {
    const textOf = Search.htmlToText;
    Search.htmlToText = (html, anchor) => textOf(html, anchor) || textOf(html, "");
  }
});
