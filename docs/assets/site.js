// Scrollable tables and code blocks take the keyboard focus; the search dialog and each copy button's region have names.
window.addEventListener("load", () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code").forEach((scrollable) => {
    scrollable.tabIndex = 0;
  });
  document.querySelectorAll(".md-code__nav").forEach((buttons, index) => {
    buttons.setAttribute("aria-label", `Code block ${index + 1}`);
  });
});
