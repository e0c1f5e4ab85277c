"use strict";
(() => {
  const tip = document.getElementById("tip");
  let shownAt = 0;

  const show = (mark, x, y) => {
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    shownAt = scrollY;
    const box = tip.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
    const top = y + 14 + box.height > innerHeight ? y - 14 - box.height : y + 14;
    tip.style.left = `${Math.max(6, Math.min(left, innerWidth - box.width - 6))}px`;
    tip.style.top = `${Math.max(6, top)}px`;
  };
  const hide = () => {
    tip.hidden = true;
    document.querySelectorAll(".mark.on").forEach((mark) => mark.classList.remove("on"));
  };
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.(".mark");
    if (mark) show(mark, event.clientX, event.clientY);
    else if (!document.querySelector(".mark.on")) hide();
  });
  document.addEventListener("pointerdown", (event) => {
    const mark = event.target.closest?.(".mark");
    hide();
    if (mark) show(mark, event.clientX, event.clientY);
  });
  addEventListener("scroll", () => { if (Math.abs(scrollY - shownAt) > 4) hide(); }, { passive: true });

  document.querySelectorAll("svg[data-steps]").forEach((svg) => {
    const marks = [...svg.querySelectorAll(".mark")];
    let place = -1;
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step || !marks.length) return;
      event.preventDefault();
      hide();
      place = Math.max(0, Math.min(marks.length - 1, place + step));
      marks[place].classList.add("on");
      const box = marks[place].getBoundingClientRect();
      show(marks[place], box.left + box.width / 2, box.top + box.height / 2);
    });
    svg.addEventListener("blur", hide);
  });

  const value = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent;
  const order = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y) ? x - y : a.localeCompare(b);
  };
  document.querySelectorAll("table[data-sortable]").forEach((table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button")?.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].sort((a, b) => order(value(a, column), value(b, column)));
        table.tBodies[0].append(...(down ? rows.reverse() : rows));
      });
    });
  });

  const folded = () => document.querySelectorAll("details:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...folded()].filter((part) => part.dataset.print !== "no");
    opened.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((part) => { part.open = false; }));
})();
