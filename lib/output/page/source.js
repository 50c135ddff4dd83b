/* Source with its figures: a list of files, and the lines of one of them. */

const KEYWORDS = new Set(("False None True and as assert async await break case class continue def del elif else " +
	"except finally for from global if import in is lambda match nonlocal not or pass raise return try type while " +
	"with yield").split(" "));
const TOKEN = /(#.*$)|([rbfuRBFU]{0,2}("""|'''))|([rbfuRBFU]{0,2}(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?))|(@?[\p{L}_][\p{L}\p{N}_]*)|(\d[\w.]*)/gu;

/* Colours the words of one line; `open` is the quote of a string that goes on from the line before.
 * Returns that of the next. */
function paint(place, text, open) {
	let at = 0;
	const put = (to, kind) => {
		if (to > at)
			place.append(kind ? make("span", {class: kind}, text.slice(at, to)) : text.slice(at, to));
		at = to;
	};
	while (at < text.length) {
		if (open) {
			const end = text.indexOf(open, at);
			put(end < 0 ? text.length : end + 3, "string");
			open = end < 0 ? open : "";
			continue;
		}
		TOKEN.lastIndex = at;
		const token = TOKEN.exec(text);
		if (!token)
			break;
		put(token.index);
		if (token[2]) {
			put(token.index + token[0].length, "string");
			open = token[3];
		} else {
			put(token.index + token[0].length, token[1] ? "comment" : token[4] ? "string" :
				token[6] ? "literal" : KEYWORDS.has(token[0]) ? "keyword" : token[0][0] === "@" ? "keyword" : "");
		}
	}
	put(text.length);
	return open;
}

class Source {
	constructor(app) {
		this.app = app;
		const {data} = app.model;
		this.byPath = new Map(data.sources.map((source) => [source.path, source]));
		/* The rows of lines that lie in each file. */
		this.rowsOf = data.files.map(() => []);
		app.model.lines.forEach(({func}, row) => this.rowsOf[data.functions.file[func]].push(row));
		this.file = -1;
		this.line = 0;
		this.files = new Table($("source-files"), "Files with Python lines", () => [
			{title: "share", number: true, bar: true, value: (file) => this.shareOf(file),
				text: (file) => percent(this.shareOf(file)), tip: "of the time, by the innermost Python line"},
			{title: "file", value: (file) => data.files[file][1], text: (file) => data.files[file][1], tip: "source file"},
		], 0, (file) => this.show(file, 0));
		$("source-text").addEventListener("keydown", (event) => this.key(event));
	}

	shareOf(file) {
		const {lines, whole} = this.app.model.figures(this.app.event);
		return whole ? this.rowsOf[file].reduce((sum, row) => sum + lines.self[row], 0) / whole : 0;
	}

	refresh() {
		const before = this.file;
		const shown = [...this.rowsOf.keys()].filter((file) => this.rowsOf[file].length && this.app.fileMatches(file));
		if (this.file < 0) {
			const shares = new Map(shown.map((file) => [file, this.shareOf(file)]));
			this.file = shown.reduce((best, file) => best < 0 || shares.get(file) > shares.get(best) ? file : best, -1);
		}
		this.files.current = this.file;
		this.files.show(shown);
		if (this.file !== before)
			this.show(this.file, 0);
		else
			this.draw();
	}

	/* Line 0: the hottest. */
	show(file, line) {
		this.file = file;
		this.line = line;
		if (!line) {
			const hot = this.hotLines()[0];
			this.line = hot ? hot.line : 0;
		}
		this.files.current = file;
		this.files.mark();
		this.draw();
		this.reveal();
	}

	/* Lines of the file with their figures, the hottest first: [{line, rows, self}]. */
	hotLines() {
		if (this.file < 0)
			return [];
		const {model, event} = this.app, {lines} = model.figures(event), byLine = new Map();
		for (const row of this.rowsOf[this.file]) {
			const {line} = model.lines[row];
			if (!lines.totalSamples[row])
				continue;
			const hot = byLine.get(line) || {line, rows: [], self: 0};
			hot.rows.push(row);
			hot.self += lines.self[row];
			byLine.set(line, hot);
		}
		return [...byLine.values()].sort((a, b) => b.self - a.self || a.line - b.line);
	}

	draw() {
		const bar = $("source-bar"), place = $("source-text"), {app} = this, {data} = app.model;
		if (this.file < 0) {
			place.replaceChildren(make("p", {class: "message"}, "No Python lines were sampled."));
			return;
		}
		const [path] = data.files[this.file], source = this.byPath.get(path), hot = this.hotLines();
		const most = hot.length ? hot[0].self : 0;
		bar.replaceChildren(make("b", {class: "path"}, path), make("span", {class: "grow"}),
			make("button", {type: "button", id: "previous-hot", title: "p", onclick: () => this.step(-1)}, "Previous hot line"),
			make("button", {type: "button", id: "next-hot", title: "n", onclick: () => this.step(1)}, "Next hot line"));
		if (source && source.changed)
			bar.append(make("span", {class: "note"}, "The file has changed since; this is the text that was recorded."));
		const columns = figureColumns(app, "lines", (row) => row);
		const heads = columns.map((column) => make("th", {scope: "col", class: "number", title: column.tip}, column.title));
		const body = make("tbody"), byLine = new Map(hot.map((each) => [each.line, each]));
		const add = (line, text, open) => {
			const element = this.lineRow(columns, line, text, byLine.get(line), most, open);
			body.append(...element.rows);
			byLine.delete(line);
			return element.open;
		};
		const kept = (line) => !app.reduced || (byLine.has(line) && byLine.get(line).rows.some((row) => app.isSeen("lines", row)));
		let before = 0;
		if (byLine.has(0) && kept(0))
			add(0, null, "");
		for (const [first, inside, ...texts] of source ? source.lines : []) {
			let open = inside;
			texts.forEach((text, i) => {
				const line = first + i;
				if (!kept(line)) {
					open = paint(make("code"), text, open);
					byLine.delete(line);
					return;
				}
				if (line > before + 1)
					body.append(this.gap(columns.length, line - before - 1));
				open = add(line, text, open);
				before = line;
			});
		}
		for (const line of [...byLine.keys()].filter(kept).sort((a, b) => a - b))
			add(line, null, "");
		place.replaceChildren(make("table", {class: "code", "aria-label": path},
			make("thead", {}, ...groupRow(columns, 2), make("tr", {}, ...heads, make("th", {scope: "col", class: "number"}, "line"),
				make("th", {scope: "col", class: "text"}, source ? "" : "the text is not in the recording"))), body));
	}

	gap(columns, lines) {
		return make("tr", {class: "gap"}, make("td", {colspan: columns + 1}, ""), make("td", {}, `⋯ ${counted(lines, "line")}`));
	}

	lineRow(columns, line, text, hot, most, open) {
		const {app} = this, part = hot && most ? hot.self / most : 0;
		const element = make("tr", {class: "line", "data-line": line, "aria-selected": line === this.line,
			onclick: () => this.choose(line)});
		element.style.setProperty("--heat-part", (0.34 * part).toFixed(3));
		for (const column of columns) {
			const cell = make("td", {class: "number"});
			if (hot)
				this.fill(cell, column, hot);
			element.append(cell);
		}
		const code = make("td", {class: "text"}), words = make("code");
		element.append(make("td", {class: "number line-number"}, line ? String(line) : "?",
			make("span", {class: "heat-mark", "aria-hidden": "true"}, part > 0.5 ? "█" : part > 0.15 ? "▌" : part > 0.02 ? "▏" : "")), code);
		if (text !== null)
			open = paint(words, text, open);
		code.append(words);
		const rows = [element];
		if (line === this.line && hot)
			rows.push(this.calls(columns.length, hot));
		return {rows, open};
	}

	/* A line of several functions (a lambda's, a comprehension's) has the sum of their figures. */
	fill(cell, column, hot) {
		if (hot.rows.length === 1 && column.cell) {
			cell.append(...column.cell(hot.rows[0]));
		} else if (hot.rows.length === 1) {
			cell.textContent = column.text(hot.rows[0]);
		} else if (column.bar !== undefined || column.title === "total") {
			cell.textContent = percent(hot.rows.reduce((sum, row) => sum + column.value(row), 0));
		} else if (column.title === "samples") {
			cell.textContent = count(hot.rows.reduce((sum, row) => sum + column.value(row), 0));
		}
		if (column.bar) {
			const value = hot.rows.reduce((sum, row) => sum + column.value(row), 0);
			cell.classList.add("bar-cell");
			cell.style.setProperty("--part", `${100 * value}%`);
		}
	}

	/* Below the chosen line: what it calls. */
	calls(columns, hot) {
		const {app} = this, {model} = app, whole = model.sums(app.event).whole || 1, callees = new Map();
		for (const row of hot.rows)
			for (const [func, value] of model.calledOn(app.event, row))
				callees.set(func, (callees.get(func) || 0) + value);
		const cell = make("td", {class: "calls"}), func = model.lines[hot.rows[0]].func;
		cell.append("in ", make("button", {type: "button", class: "link", onclick: () => app.showFunction(func)},
			model.data.functions.name[func]));
		const most = [...callees].sort((a, b) => b[1] - a[1]).slice(0, 8);
		if (most.length)
			cell.append(`   calls on line ${hot.line}: `);
		for (const [callee, value] of most)
			cell.append(make("button", {type: "button", class: "link", onclick: () => app.showFunction(callee)},
				model.data.functions.name[callee]), ` ${percent(value / whole) || "0.0%"}   `);
		cell.append(make("button", {type: "button", class: "link", onclick: () => app.showInFlame(func)}, "show in flame graph"));
		return make("tr", {class: "detail"}, make("td", {colspan: columns + 1}), cell);
	}

	choose(line) {
		this.line = line;
		const at = $("source-text").scrollTop;
		this.draw();
		$("source-text").scrollTop = at;
	}

	step(by) {
		const hot = this.hotLines().filter(({self}, i, all) => self > all[0].self * 0.02).map(({line}) => line).sort((a, b) => a - b);
		if (!hot.length)
			return;
		const next = by > 0 ? hot.find((line) => line > this.line) ?? hot[0] :
			hot.findLast((line) => line < this.line) ?? hot[hot.length - 1];
		this.line = next;
		this.draw();
		this.reveal();
	}

	reveal() {
		const line = $("source-text").querySelector(`tr[data-line="${this.line}"]`);
		if (line)
			line.scrollIntoView({block: "center"});
	}

	key(event) {
		const lines = [...$("source-text").querySelectorAll("tr.line")];
		const at = lines.findIndex((line) => Number(line.dataset.line) === this.line);
		const next = {ArrowDown: lines[at + 1], ArrowUp: lines[at - 1]}[event.key];
		if (!next || event.ctrlKey || event.altKey || event.metaKey || event.target !== $("source-text"))
			return;
		this.choose(Number(next.dataset.line));
		$("source-text").querySelector(`tr[data-line="${this.line}"]`).scrollIntoView({block: "nearest"});
		event.preventDefault();
	}
}
