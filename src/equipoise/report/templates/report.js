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
    let place = -1;
    svg.addEventListener("keydown", (event) => {
      const marks = [...svg.querySelectorAll(".mark")];
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

  function create(tag, attributes = {}, text = "") {
    const made = document.createElement(tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    made.textContent = text;
    return made;
  }

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

  // Tables of many rows get a field that filters them.
  document.querySelectorAll("table[data-sortable]").forEach((table) => {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 6) return;
    const label = create("label", { class: "filter" }, "Filter rows");
    const field = create("input", { type: "search" });
    label.append(field);
    table.parentElement.before(label);
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
    });
  });

  explore();

  const folded = () => document.querySelectorAll("details:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...folded()].filter((part) => part.dataset.print !== "no");
    opened.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((part) => { part.open = false; }));

  // Controls over the rows: bins, classes and groups, calibrators, a threshold.
  function explore() {
    const source = document.getElementById("data");
    if (!source) return;
    const data = JSON.parse(source.textContent);
    const state = { method: 0, variant: 0, slice: 0, bins: Math.max(0, data.bins.indexOf(data.chosen)), corp: false, step: null };
    const byId = (id) => document.getElementById(id);
    const method = () => data.methods[state.method];
    const variant = () => method().variants[state.variant];
    const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
    const count = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 1 });
    const draw = (parent, tag, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      const { text = "", ...rest } = attributes;
      Object.entries(rest).forEach(([name, value]) => made.setAttribute(name, value));
      made.textContent = text;
      parent.append(made);
      return made;
    };

    // Which method, before or after which calibrator: the same choice in every panel.
    function choosers() {
      document.querySelectorAll(".choose").forEach((area, number) => {
        area.textContent = "";
        if (data.methods.length > 1) {
          const label = create("label", {}, "Method");
          const select = create("select", { "data-control": "method" });
          data.methods.forEach((one, index) => select.append(new Option(one.name, index, false, index === state.method)));
          select.addEventListener("change", () => { Object.assign(state, { method: Number(select.value), variant: 0, slice: 0, step: null }); refresh("method", number); });
          label.append(select);
          area.append(label);
        }
        if (method().variants.length > 1) {
          const group = create("fieldset", { "data-control": "variant" });
          group.append(create("legend", {}, "Calibration"));
          method().variants.forEach((one, index) => {
            const label = create("label");
            const radio = create("input", { type: "radio", name: `variant-${number}`, value: index });
            radio.checked = index === state.variant;
            radio.addEventListener("change", () => { Object.assign(state, { variant: index, step: null }); refresh("variant", number); });
            label.append(radio, one.name);
            group.append(label);
          });
          area.append(group);
        }
      });
      const select = byId("explore-slice");
      select.textContent = "";
      const groups = {};
      variant().slices.forEach((one, index) => {
        const option = new Option(one.column ? one.name : "all rows", index, false, index === state.slice);
        if (!one.column) { select.append(option); return; }
        if (!groups[one.column]) {
          groups[one.column] = create("optgroup", { label: one.column });
          select.append(groups[one.column]);
        }
        groups[one.column].append(option);
      });
      state.slice = Math.min(state.slice, variant().slices.length - 1);
      select.value = String(state.slice);
    }

    // Fine bins summed to the number of bins that was chosen.
    function coarse() {
      const size = data.bins[state.bins], factor = data.fine / size;
      const sums = Array.from({ length: size }, () => [0, 0, 0]);
      variant().slices[state.slice].bins.forEach(([index, weight, confidence, frequency]) => {
        const sum = sums[Math.floor(index / factor)];
        sum[0] += weight; sum[1] += weight * confidence; sum[2] += weight * frequency;
      });
      return sums;
    }

    function wilson(share, n) {
      const { z } = data, z2 = z * z, stretch = 1 + z2 / n;
      const center = (share + z2 / (2 * n)) / stretch;
      const half = z * Math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / stretch;
      return [Math.max(0, center - half), Math.min(1, center + half)];
    }

    function drawReliability() {
      const svg = byId("explore-chart"), sums = coarse(), size = sums.length;
      const [left, top, side, below, height] = [44, 8, 266, 300, 58];
      const x = (value) => left + side * value, y = (value) => top + side * (1 - value);
      const total = sums.reduce((sum, bin) => sum + bin[0], 0), most = Math.max(...sums.map((bin) => bin[0]));
      svg.textContent = "";
      [0, 0.2, 0.4, 0.6, 0.8, 1].forEach((tick) => {
        draw(svg, "line", { x1: x(0), x2: x(1), y1: y(tick), y2: y(tick), class: "grid" });
        draw(svg, "text", { x: left - 6, y: y(tick) + 3.5, "text-anchor": "end", class: "tick", text: tick });
        draw(svg, "text", { x: x(tick), y: below + height + 14, "text-anchor": "middle", class: "tick", text: tick });
      });
      draw(svg, "text", { x: left + side / 2, y: below + height + 30, "text-anchor": "middle", class: "label", text: data.claimed });
      draw(svg, "text", { transform: `translate(11 ${top + side / 2}) rotate(-90)`, "text-anchor": "middle", class: "label", text: data.came });
      draw(svg, "line", { x1: x(0), x2: x(1), y1: below + height, y2: below + height, class: "axis" });
      let error = 0;
      sums.forEach(([weight, confidence, outcome], index) => {
        if (!weight) return;
        const [low, high] = [index / size, (index + 1) / size], [claimed, came] = [confidence / weight, outcome / weight];
        const [from, to] = wilson(came, weight), width = side / size;
        error += Math.abs(confidence - outcome);
        const bar = draw(svg, "g", { class: "mark" });
        bar.dataset.tip = `${low.toFixed(2)} to ${high.toFixed(2)}\n${count(weight)} rows\nclaimed ${percent(claimed)}\nobserved ${percent(came)}  [${percent(from)}, ${percent(to)}]`;
        draw(bar, "rect", { x: x(low), y: top, width, height: side, class: "hit" });
        draw(bar, "rect", { x: x(low), y: below + height * (1 - weight / most), width, height: height * weight / most, class: "rows" });
        if (state.corp) return;
        draw(bar, "rect", { x: x(low), y: y(came), width, height: side * came, class: "came" });
        draw(bar, "rect", { x: x(low), y: y(Math.max(claimed, came)), width, height: side * Math.abs(claimed - came), class: claimed > came ? "over" : "under" });
        draw(bar, "line", { x1: x(low), x2: x(high), y1: y(came), y2: y(came), class: "top" });
        draw(bar, "line", { x1: x((low + high) / 2), x2: x((low + high) / 2), y1: y(from), y2: y(to), class: "whisker" });
      });
      draw(svg, "line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "ideal" });
      if (state.corp) {
        const path = variant().corp.map(([low, high, , frequency], index) => `${index ? "L" : "M"}${x(low)} ${y(frequency)}L${x(high)} ${y(frequency)}`).join("");
        draw(svg, "path", { d: path, class: "corp" });
      }
      const mean = [1, 2].map((part) => sums.reduce((sum, bin) => sum + bin[part], 0) / total);
      byId("explore-bins-value").value = size;
      byId("explore-result").textContent = `${count(total)} rows: mean ${data.claimed} ${percent(mean[0])}, ${data.came} ${percent(mean[1])}; ECE ${percent(error / total, 2)} with ${size} bins.`;
      const [score, miscalibration, discrimination, uncertainty] = variant().split;
      if (state.corp) byId("explore-result").textContent += ` Brier score ${score} = miscalibration ${miscalibration} − discrimination ${discrimination} + uncertainty ${uncertainty}.`;
    }

    // The step that is shown: the one chosen, or at first the most lenient certified one, or all rows.
    function stepNow() {
      const steps = variant().steps;
      if (state.step === null) {
        const certified = steps.map((step, index) => (step[3].length ? index : -1)).filter((index) => index >= 0);
        state.step = certified.length ? certified[certified.length - 1] : steps.length - 1;
      }
      return steps[state.step];
    }

    // Three decimals, or more close to one, as in the tables.
    function thresholdText(value) {
      let decimals = 3;
      while (value > 0.99 && value < 1 && decimals < 10 && 1 - value < 2 * 10 ** (1 - decimals)) decimals += 1;
      return value.toFixed(decimals);
    }

    function drawThreshold() {
      const steps = variant().steps, [threshold, coverage, error, limits] = stepNow();
      const slider = byId("act-threshold"), svg = byId("act-chart"), [left, top, width, height] = [52, 8, 456, 104];
      slider.max = steps.length - 1;
      slider.value = steps.length - 1 - state.step;
      const level = `${+(100 * data.level).toFixed(2)}%`;
      const promise = limits.length ? ` Certified: with ${level} confidence, at most ${percent(Math.min(...limits), 0)} of accepted predictions are wrong.` : " Not certified.";
      const words = `${threshold > 0 ? `Threshold ${thresholdText(threshold)}` : "No threshold"}: accepts ${percent(coverage)} of the rows; ${percent(error, 2)} of them are wrong.${promise}`;
      byId("act-result").textContent = words;
      slider.setAttribute("aria-valuetext", words);
      const area = byId("act-certified");
      area.textContent = "";
      const certified = steps.flatMap((step, index) => step[3].map((limit) => [limit, index])).sort((a, b) => a[0] - b[0]);
      if (certified.length) {
        const row = create("span", { class: "promises" });
        certified.forEach(([limit, index]) => {
          const button = create("button", { type: "button", "aria-pressed": index === state.step }, `at most ${percent(limit, 0)} errors`);
          button.addEventListener("click", () => {
            state.step = index;
            drawThreshold();
            [...area.querySelectorAll("button")].find((one) => one.textContent === button.textContent)?.focus();
          });
          row.append(button);
        });
        area.append("Certified thresholds: ", row);
      } else area.textContent = "No threshold is certified for 1, 2, 5 or 10% errors.";
      svg.textContent = "";
      const highest = Math.max(...steps.map((step) => step[2]), 0.01);
      const x = (value) => left + width * value, y = (value) => top + height * (1 - value / highest);
      [0, 0.25, 0.5, 0.75, 1].forEach((tick) => draw(svg, "text", { x: x(tick), y: top + height + 14, "text-anchor": "middle", class: "tick", text: 100 * tick }));
      [0, highest].forEach((tick) => {
        draw(svg, "line", { x1: x(0), x2: x(1), y1: y(tick), y2: y(tick), class: tick ? "grid" : "axis" });
        draw(svg, "text", { x: left - 6, y: y(tick) + 3.5, "text-anchor": "end", class: "tick", text: (100 * tick).toFixed(1) });
      });
      draw(svg, "text", { x: left + width / 2, y: top + height + 30, "text-anchor": "middle", class: "label", text: "accepted rows (%)" });
      draw(svg, "text", { transform: `translate(11 ${top + height / 2}) rotate(-90)`, "text-anchor": "middle", class: "label", text: "errors (%)" });
      certified.forEach(([, index]) => draw(svg, "line", { x1: x(steps[index][1]), x2: x(steps[index][1]), y1: y(0), y2: y(highest), class: "certified" }));
      draw(svg, "path", { d: steps.map((step, index) => `${index ? "L" : "M"}${x(step[1]).toFixed(1)} ${y(step[2]).toFixed(1)}`).join(""), class: "series s0" });
      draw(svg, "line", { x1: x(coverage), x2: x(coverage), y1: y(0), y2: y(highest), class: "chosen" });
      draw(svg, "circle", { cx: x(coverage), cy: y(error), r: 5, class: "handle" });
    }

    function refresh(control, panel) {
      choosers();
      const corp = byId("explore-corp");
      corp.disabled = !variant().corp || state.slice > 0;
      if (corp.disabled) corp.checked = state.corp = false;
      drawReliability();
      if (byId("act")) drawThreshold();
      if (control) {
        const area = document.querySelectorAll(".choose")[panel].querySelector(`[data-control=${control}]`);
        (area?.querySelector("input:checked") ?? area)?.focus();
      }
    }

    const bins = byId("explore-bins");
    bins.max = data.bins.length - 1;
    bins.value = state.bins;
    bins.addEventListener("input", () => { state.bins = Number(bins.value); bins.setAttribute("aria-valuetext", `${data.bins[state.bins]} bins`); drawReliability(); });
    byId("explore-slice").addEventListener("change", (event) => { state.slice = Number(event.target.value); refresh(); });
    byId("explore-corp").addEventListener("change", (event) => { state.corp = event.target.checked; drawReliability(); });
    byId("act-threshold")?.addEventListener("input", (event) => { state.step = variant().steps.length - 1 - Number(event.target.value); drawThreshold(); });
    document.querySelectorAll(".panel").forEach((panel) => { panel.hidden = false; });
    refresh();
  }
})();
