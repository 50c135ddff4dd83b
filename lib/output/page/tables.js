/* Tables: a column is {title, group, tip, value(row), text(row), number, bar, cell(row)}. */
const ROWS_SHOWN = 300;

class Table {
	/* `open(row)`: Enter or a click on a row. */
	constructor(place, name, columns, sort, open) {
		Object.assign(this, {place, name, columns, open, sort, descending: true, all: false, current: null});
		place.addEventListener("keydown", (event) => this.key(event));
	}

	show(rows) {
		this.rows = rows;
		this.draw();
	}

	sorted() {
		const column = this.columns()[this.sort] || this.columns()[0], sign = this.descending ? -1 : 1;
		const order = (a, b) => {
			const x = column.value(a), y = column.value(b);
			if (x === y)
				return 0;
			if (x === null || y === null)
				return x === null ? 1 : -1; /* what is not known comes last */
			return (x < y ? -1 : 1) * sign;
		};
		return [...this.rows].sort(order);
	}

	draw() {
		const columns = this.columns(), rows = this.sorted(), shown = this.all ? rows : rows.slice(0, ROWS_SHOWN);
		const heads = columns.map((column, i) => make("th", {
			scope: "col", class: column.number ? "number" : "text",
			"aria-sort": i === this.sort ? (this.descending ? "descending" : "ascending") : "none",
		}, make("button", {type: "button", title: column.tip, onclick: () => this.sortBy(i)},
			make("span", {class: "order", "aria-hidden": "true"}, i === this.sort ? (this.descending ? "▾" : "▴") : ""), column.title)));
		const body = make("tbody");
		for (const row of shown)
			body.append(this.row(columns, row));
		const table = make("table", {"aria-label": this.name}, make("thead", {}, ...groupRow(columns, 0), make("tr", {}, ...heads)), body);
		this.place.replaceChildren(table);
		if (!rows.length)
			this.place.append(make("p", {class: "message"}, "Nothing matches."));
		if (shown.length < rows.length)
			this.place.append(make("button", {type: "button", class: "more", onclick: () => {
				this.all = true;
				this.draw();
			}}, `Show all ${count(rows.length)} rows`));
		this.mark();
	}

	row(columns, row) {
		const line = make("tr", {tabindex: "-1", onclick: () => this.choose(row)});
		line.row = row;
		for (const column of columns) {
			const cell = make("td", {class: column.number ? "number" : "text"});
			if (column.cell)
				cell.append(...column.cell(row));
			else
				cell.textContent = column.text(row);
			if (column.bar) {
				cell.classList.add("bar-cell");
				cell.style.setProperty("--part", `${Math.min(100, 100 * (column.value(row) || 0))}%`);
			}
			line.append(cell);
		}
		return line;
	}

	sortBy(column) {
		this.descending = this.sort === column ? !this.descending : this.columns()[column].number !== undefined;
		this.sort = column;
		this.draw();
		this.place.querySelectorAll("th button")[column].focus();
	}

	choose(row) {
		this.current = row;
		this.mark();
		this.open(row);
	}

	/* One row can be reached by Tab: the chosen one, else the first. */
	mark() {
		let reached = null;
		for (const line of this.place.querySelectorAll("tbody tr")) {
			const chosen = this.current !== null && line.row === this.current;
			line.setAttribute("aria-selected", chosen);
			line.tabIndex = -1;
			if (chosen || !reached)
				reached = line;
		}
		if (reached)
			reached.tabIndex = 0;
	}

	key(event) {
		const line = event.target.closest("tbody tr");
		if (!line || event.ctrlKey || event.altKey || event.metaKey)
			return;
		const next = {ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling,
			Home: line.parentElement.firstElementChild, End: line.parentElement.lastElementChild}[event.key];
		if (next) {
			line.tabIndex = -1;
			next.tabIndex = 0;
			next.focus();
			next.scrollIntoView({block: "nearest"});
		} else if (event.key === "Enter") {
			this.choose(line.row);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}
}

/* The row above the headings: whose the columns below are. No row where none has a group; `more` are
 * columns behind. */
function groupRow(columns, more) {
	const cells = [];
	for (const {group} of columns) {
		const last = cells[cells.length - 1];
		if (last && last.group === group)
			last.count++;
		else
			cells.push({group, count: 1});
	}
	if (!cells.some(({group}) => group))
		return [];
	if (more)
		cells.push({count: more});
	return [make("tr", {class: "groups"}, ...cells.map(({group, count: columns}) =>
		make("th", {colspan: columns, scope: "colgroup", class: group ? "group" : ""}, group || "")))];
}

/* Columns of figures, per event: of functions and of lines alike. `kind` names the table of the
 * model's figures, `at(row)` the index in it. */
function figureColumns(app, kind, at) {
	const {model} = app, {events} = model.data, columns = [];
	/* What was only counted along is in the metrics. */
	const order = [app.event, ...events.keys()].filter((event, i, all) => all.indexOf(event) === i &&
		(event === app.event || events[event].leader === undefined));
	for (const event of order) {
		const figures = model.figures(event), table = figures[kind];
		const group = order.length > 1 ? events[event].name : undefined;
		const share = (column) => (row) => figures.whole ? table[column][at(row)] / figures.whole : 0;
		columns.push({title: "self", group, number: true, bar: true, value: share("self"),
			text: (row) => percent(share("self")(row)),
			tip: kind === "lines" ? "of the time in which this is the innermost Python line" : "spent in its own code"});
		columns.push({title: "total", group, number: true, value: share("total"),
			text: (row) => percent(share("total")(row)), tip: "with all that it calls"});
	}
	for (const metric of model.data.metrics.filter(({shown}) => shown)) {
		const value = (row) => metricValue(metric, (event) => model.figures(event)[kind].self[at(row)],
			(event) => model.figures(event)[kind].selfSamples[at(row)]);
		columns.push({title: metric.heading, number: true, value, text: (row) => metricText(metric, value(row)),
			tip: metric.summary});
	}
	const table = model.figures(app.event)[kind];
	columns.push({title: "samples", number: true, value: (row) => table.selfSamples[at(row)],
		text: (row) => count(table.selfSamples[at(row)]) === "0" ? "" : count(table.selfSamples[at(row)]),
		tip: "behind self"});
	if (model.data.folded)
		return columns;
	columns.push({title: "py nat krn", number: true, value: (row) => table.split[3 * at(row)] || null,
		cell: (row) => splitCell(table.split, at(row)), text: () => "",
		tip: "where Python code's time goes: Python itself, native code it calls, the kernel, in percent"});
	return columns;
}

/* A small bar in three parts and the same in words. */
function splitCell(split, at) {
	const parts = [split[3 * at], split[3 * at + 1], split[3 * at + 2]], whole = parts[0] + parts[1] + parts[2];
	if (!whole)
		return [];
	const words = parts.map((part) => Math.round(100 * part / whole));
	const bar = make("span", {class: "split-bar", "aria-hidden": "true"});
	parts.forEach((part, kind) => {
		const piece = make("i", {class: KINDS[kind].toLowerCase()});
		piece.style.width = 100 * part / whole + "%";
		bar.append(piece);
	});
	return [make("span", {class: "split-words"}, words.map((word) => word || "·").map((word) =>
		String(word).padStart(3, "\u2007")).join(" ")), bar];
}
