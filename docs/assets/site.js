// Scrollable tables and code blocks take the keyboard focus, and each copy button's region has a name.
window.addEventListener("load", () => {
  document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code").forEach((scrollable) => {
    scrollable.tabIndex = 0;
  });
  document.querySelectorAll(".md-code__nav").forEach((buttons, index) => {
    buttons.setAttribute("aria-label", `Code block ${index + 1}`);
  });
});
