"use strict";
// Countdowns run by the server's clock: the laptop's may be wrong, and a drill has its own.
let offset = 0;
let spoken = 0;
const byId = (id) => document.getElementById(id);
const clock = (s) => (s < 0 ? "0:00" : `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`);
const learn = () => {
  const live = byId("live");
  if (live?.dataset.now) offset = Number(live.dataset.now) - Date.now();
};
const tick = () => {
  const live = byId("live");
  if (!live?.dataset.now) return;
  const base = Number(live.dataset.now);
  const since = Date.now() + offset - base;
  const now = "still" in live.dataset ? base : base + since * Number(live.dataset.speed);
  for (const each of document.querySelectorAll("[data-until]")) each.textContent = clock((Number(each.dataset.until) - now) / 1000);
};
const speak = () => {
  // At most every ten seconds: a storm changes faster than anybody can listen.
  const from = byId("verdict");
  const to = byId("spoken");
  if (!from || !to || Date.now() - spoken < 10000 || to.textContent === from.textContent) return;
  spoken = Date.now();
  to.textContent = from.textContent;
};
let replaying;
document.addEventListener("input", (event) => {
  if (event.target.id !== "at") return;
  const form = event.target.form;
  clearTimeout(replaying);
  replaying = setTimeout(() => {
    const to = `${form.action.split("?")[0]}?at=${event.target.value}`;
    history.replaceState(null, "", to);
    htmx.ajax("GET", to, { target: "#live", swap: "outerMorph" });
  }, 60);
});
// Nobody looks at a hidden page; on return it is read at once.
document.addEventListener("htmx:before:request", (event) => {
  const live = byId("live");
  const polls = event.target === live && !live.hasAttribute("hx-get");
  if (document.hidden || polls) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) byId("live")?.dispatchEvent(new Event("look"));
});
// A session that has ended takes nothing from the page: what was seen last stays, and says that it is old.
document.addEventListener("htmx:response:error", (event) => {
  const ended = byId("ended");
  if (event.detail.ctx.response.status !== 401 || !ended) return;
  ended.hidden = false;
  byId("live")?.classList.add("late");
});
document.addEventListener("htmx:after:swap", () => { learn(); tick(); });
learn();
tick();
setInterval(() => { tick(); speak(); }, 250);
