"use strict";
(function () {
  const make = (tag, props, ...inside) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...inside);
    return node;
  };
  const value = (row, column) => {
    const cell = row.cells[column];
    const summary = cell.querySelector("summary");
    return (summary || cell).textContent.trim();
  };
  const numeric = (text) => {
    const plain = text.replace(/,/g, "").replace(/\u2212/g, "-");
    return /^-?\d/.test(plain) ? parseFloat(plain) : NaN;
  };
  const sortBy = (table, column, down) => {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => ({ row, text: value(row, column) }));
    const numbers = rows.every(({ text }) => text === "–" || text === "" || /^[-\u2212]?[\d,.]+( |\[|$)/.test(text));
    const missing = (text) => text === "" || text === "–";
    rows.sort((a, b) => {
      if (missing(a.text) || missing(b.text)) return missing(a.text) - missing(b.text);
      const order = numbers ? numeric(a.text) - numeric(b.text)
        : a.text.localeCompare(b.text, undefined, { numeric: true });
      return down ? -order : order;
    });
    body.append(...rows.map(({ row }) => row));
  };
  const sortable = (table) => {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortBy(table, column, down);
      });
    });
  };
  const filterable = (table) => {
    const rows = Array.from(table.tBodies[0].rows, (row) => ({ row, text: row.textContent.toLowerCase() }));
    const words = make("input", { type: "search", placeholder: "Filter: query, label, document, stage" });
    words.setAttribute("aria-label", "Filter queries");
    const losing = make("input", { type: "checkbox" });
    const told = make("span", { className: "faint" });
    told.setAttribute("role", "status");
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach(({ row, text }) => {
        const lost = row.querySelector(":scope > td.x");
        const fits = wanted.every((word) => text.includes(word)) && (!losing.checked || (lost && lost.textContent.trim()));
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      });
      told.textContent = shown + " of " + rows.length + " shown";
    };
    const all = make("button", { type: "button", textContent: "Open all shown" });
    all.addEventListener("click", () => {
      const boxes = rows.filter(({ row }) => !row.hidden).map(({ row }) => row.querySelector("details")).filter(Boolean);
      const open = boxes.some((box) => !box.open);
      boxes.forEach((box) => { box.open = open; });
      all.textContent = open ? "Close all shown" : "Open all shown";
    });
    words.addEventListener("input", apply);
    losing.addEventListener("change", apply);
    const tools = make("div", { className: "tool" }, words);
    if (table.querySelector("tbody > tr > td.x")) tools.append(make("label", {}, losing, " only with losses"));
    if (table.querySelector("tbody details")) tools.append(all);
    tools.append(told);
    table.before(tools);
    apply();
  };
  document.querySelectorAll("table.sort").forEach(sortable);
  document.querySelectorAll("table.queries").forEach(filterable);
})();
