"use strict";
// Escape puts away what hover or focus has opened, until the pointer or the focus moves on.
addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.body.classList.add("quiet");
});
for (const what of ["pointerover", "focusin"])
  addEventListener(what, () => document.body.classList.remove("quiet"));
// On paper nothing can be unfolded.
const folded = new Set();
addEventListener("beforeprint", () => {
  for (const list of document.querySelectorAll("details:not([open])")) {
    folded.add(list);
    list.open = true;
  }
});
addEventListener("afterprint", () => {
  for (const list of folded) list.open = false;
  folded.clear();
});
