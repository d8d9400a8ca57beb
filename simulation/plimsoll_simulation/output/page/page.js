"use strict";
// Escape puts away what hover or focus has opened, until the pointer or the focus moves on.
addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.body.classList.add("quiet");
});
for (const what of ["pointerover", "focusin"])
  addEventListener(what, () => document.body.classList.remove("quiet"));
// The words that the keyboard opens are in view; if they are too long for that, what they are about.
addEventListener("focusin", ({target}) => {
  if (!target.matches(":focus-visible")) return;
  for (const part of [target.querySelector(".tip"), target])
    part?.scrollIntoView({block: "nearest"});
});
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
