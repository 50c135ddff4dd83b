/* The page: which view is shown, of which event, and the keys. */

/* Of an event, from which Reduced keeps functions and lines. */
const REDUCED = 0.01;
const TABS = ["flame", "functions", "lines", "source", "modules", "threads", "notes"];

class App {
	constructor(data) {
		this.model = new Model(data);
		this.event = data.event;
		this.tab = "flame";
		this.matched = null;
		this.func = -1;
		this.modes = colourModes(this);
		this.colour = "kind";
		this.origin = -1;
		this.reduced = data.reduced > 0;
		this.flame = new Flame(this);
		this.timeline = new Timeline(this);
		this.source = new Source(this);
		this.makeTables();
		this.fillHead();
		this.fillNotes();
		this.listen();
		this.refresh();
	}

	/* Words */

	eventName() {
		return this.model.data.events[this.event]?.name || "samples";
	}

	placeOf(func) {
		const {functions, files} = this.model.data, name = functions.name[func];
		if (functions.kind[func] !== PYTHON && name.startsWith("["))
			return "";
		const file = files[functions.file[func]][1];
		return functions.kind[func] === PYTHON && functions.line[func] ? `${file}:${functions.line[func]}` : file;
	}

	threadName(thread) {
		const [pid, tid, comm] = this.model.data.threads[thread];
		return `${comm} ${pid === tid ? pid : `${pid}/${tid}`}`;
	}

	mode() {
		return this.modes.find((mode) => mode.key === this.colour) || this.modes[0];
	}

	fillHead() {
		/* The program's folder says little. */
		const {data} = this.model, title = data.command.replace(/^\/\S*\/(?=\S)/, "") || "recording";
		document.title = `${title} - pyperf`;
		$("command").textContent = title;
		$("command").title = data.command;
		const facts = [duration(data.duration)];
		if (data.python)
			facts.push(data.python);
		facts.push(counted(data.threads.length, "thread"), counted(data.samples, "sample"));
		if (data.samples)
			facts.push(`Python lines on ${(100 * data.python_lines / data.samples).toFixed(1)}%`);
		if (data.filter)
			facts.push(`only ${data.filter}`);
		if (data.shown)
			facts.push(`shown: ${data.shown}`);
		$("facts").textContent = facts.join("  ·  ");
		data.events.forEach((event, i) => $("event").append(make("option", {value: i}, event.name)));
		$("event").value = this.event;
		$("event-label").hidden = data.events.length < 2;
		$("origin").append(make("option", {value: -1}, "all"));
		ORIGINS.forEach((name, origin) => data.functions.origin.includes(origin) &&
			$("origin").append(make("option", {value: origin}, name)));
		for (const mode of this.modes)
			$("colour").append(make("option", {value: mode.key}, mode.title));
	}

	fillNotes() {
		const {data} = this.model, place = $("notes-text");
		const list = (items) => make("ul", {}, ...items.map((item) => make("li", {}, item)));
		const notes = [...data.losses];
		if (data.shown)
			notes.push(`Shown: ${data.shown}. What other code costs is its caller's; shares stay of the whole.`);
		if (data.cut_samples)
			notes.push(`${counted(data.cut_samples, "sample")} lie in stacks that were seen fewer than ${data.fewest} times: ` +
				"their callers in the middle are left out of this page, so totals of these are a little too small.");
		if (data.sources_left_out)
			notes.push(`The text of ${counted(data.sources_left_out, "file")} is left out of this page: it would be too large.`);
		place.append(make("h2", {}, "What is missing"), notes.length ? list(notes) : make("p", {}, "Nothing was lost."));
		place.append(make("h2", {}, "Events"), list(data.events.map((event) => {
			const how = event.frequency ? `sampled ${count(event.frequency)} times a second` :
				event.every ? `sampled every ${count(event.every)}` : "sampled";
			return event.leader === undefined ? `${event.name}: ${how}, ${counted(event.lost, "record")} lost` :
				`${event.name}: counted at the samples of ${data.events[event.leader].name}`;
		})));
		place.append(make("h2", {}, "Words"), ...this.terms());
		place.append(make("p", {class: "faint"}, `Made by pyperf ${data.version}. This page is one file and loads nothing.`));
	}

	terms() {
		return [make("dl", {},
			make("dt", {}, "self"), make("dd", {}, "The innermost code of the sample is the function's. Of a line: all time in " +
				"which it is the innermost Python line, native code that it calls included."),
			make("dt", {}, "total"), make("dd", {}, "The function or line is anywhere on the stack; once per sample, however " +
				"deep it recurses."),
			make("dt", {}, "py nat krn"), make("dd", {}, "Where the time of Python code went: in Python itself, in native code " +
				"called from there, in the kernel; in percent."),
			make("dt", {}, "inverted"), make("dd", {}, "The flame graph begins with the innermost functions; below each are its " +
				"callers."))];
	}

	fillKeys() {
		const keys = [["1 – 7", "views"], ["/", "search; Escape ends it"], ["e   c", "next event, next colour"],
			["o   r", "next choice of code, reduced"], ["t", "light or dark"], ["i   u", "invert the flame graph, let it grow upwards"],
			["← → ↑ ↓", "move in the flame graph, a table or the source"], ["Enter", "zoom into the frame, open the row"],
			["Backspace", "zoom out one frame"], ["Escape", "show everything again"], ["s", "source of the chosen frame or function"],
			["f", "the chosen function in the flame graph"], ["x", "callers and callees of the chosen frame"],
			["n   p", "next and previous hot line of the source"], ["Tab to the time line, ← → Shift", "select a stretch of time"],
			["?", "this"]];
		const close = make("button", {type: "button", onclick: () => $("keys").close()}, "Close");
		$("keys").replaceChildren(make("h2", {}, "Keys"), make("table", {}, make("tbody", {}, ...keys.map(([key, what]) =>
			make("tr", {}, make("th", {scope: "row"}, make("kbd", {}, key)), make("td", {}, what))))),
			make("h2", {}, "Words"), ...this.terms(), close);
	}

	/* Tables */

	makeTables() {
		const {model} = this, {data} = model, {functions} = data;
		const text = (title, value, tip, more) => ({title, value, text: value, tip, ...more});
		this.functions = new Table($("functions-table"), "Functions", () => [
			...figureColumns(this, "functions", (func) => func),
			text("function", (func) => functions.name[func], "by qualified name", {cell: (func) => [this.nameCell(func)]}),
			text("place", (func) => this.placeOf(func), "where it is defined"),
		], 0, (func) => {
			this.func = func;
			this.drawPanel();
		});
		this.lines = new Table($("lines-table"), "Lines", () => [
			...figureColumns(this, "lines", (row) => row),
			text("line", (row) => this.lineName(row), "file and line"),
			text("function", (row) => functions.name[model.lines[row].func], "that it belongs to"),
			text("", (row) => this.lineText(row), "source", {cell: (row) => [make("code", {}, this.lineText(row).trim())]}),
		], 0, (row) => this.showSource(model.lines[row].func, model.lines[row].line));
		const share = (table) => (row) => model.sums(this.event).whole ? row[table] / model.sums(this.event).whole : 0;
		this.modulesTable = new Table($("modules-table"), "Files", () => [
			{title: "self", number: true, bar: true, value: share("self"), text: (row) => percent(share("self")(row)),
				tip: "spent in its own code"},
			text("functions", (row) => row.functions, "that were sampled", {number: true}),
			text("kind", (row) => row.origin, "whose code it is"),
			text("file", (row) => data.files[row.file][0], "source or object file"),
		], 0, (row) => row.python ? this.showFile(row.file) : this.searchFor(data.files[row.file][1]));
		this.threadsTable = new Table($("threads-table"), "Threads", () => {
			const whole = model.threads(this.event).reduce((sum, row) => sum + row[1], 0);
			return [
				{title: "share", number: true, bar: true, value: (row) => whole ? row[1] / whole : 0,
					text: (row) => percent(whole ? row[1] / whole : 0), tip: "of the selected time"},
				text("samples", (row) => row[2], "", {number: true}),
				text("process", (row) => data.threads[row[0]][0], "", {number: true}),
				text("thread", (row) => data.threads[row[0]][1], "", {number: true}),
				text("name", (row) => data.threads[row[0]][2], "a click shows only this thread"),
				text("", (row) => row[0] === model.selection.thread ? "shown alone" : "", ""),
			];
		}, 0, (row) => this.select({thread: model.selection.thread === row[0] ? -1 : row[0]}));
	}

	nameCell(func) {
		const kind = this.model.data.functions.kind[func];
		return make("span", {class: "name " + KINDS[kind].toLowerCase()}, this.model.data.functions.name[func]);
	}

	lineName(row) {
		const {func, line} = this.model.lines[row], {functions, files} = this.model.data;
		return `${files[functions.file[func]][1]}:${line || "?"}`;
	}

	lineText(row) {
		const {func, line} = this.model.lines[row], {functions, files} = this.model.data;
		const source = this.source.byPath.get(files[functions.file[func]][0]);
		for (const [first, , ...texts] of source ? source.lines : [])
			if (line >= first && line < first + texts.length)
				return texts[line - first];
		return "";
	}

	modules() {
		const {model} = this, {functions} = model.data, figures = model.figures(this.event).functions, rows = new Map();
		functions.name.forEach((_, func) => {
			if (!figures.totalSamples[func])
				return;
			const file = functions.file[func];
			const row = rows.get(file) || {file, self: 0, functions: 0, origin: ORIGINS[functions.origin[func]],
				python: functions.kind[func] === PYTHON};
			row.self += figures.self[func];
			row.functions++;
			rows.set(file, row);
		});
		return [...rows.values()].filter((row) => this.fileMatches(row.file));
	}

	/* The chosen function, its callers and its callees. */
	drawPanel() {
		const {model} = this, {data} = model, place = $("function-panel"), {func} = this;
		if (func < 0) {
			place.replaceChildren();
			return;
		}
		const figures = model.figures(this.event), {callers, callees} = model.neighbours(this.event, func);
		const python = data.functions.kind[func] === PYTHON;
		const list = (rows, empty) => rows.length ? make("table", {class: "near"}, make("tbody", {}, ...rows.slice(0, 40).map(([other, value]) =>
			make("tr", {}, make("td", {class: "number"}, percent(value / (figures.whole || 1)) || "0.0%"), make("td", {},
				other < 0 ? make("span", {class: "faint"}, "nothing: the stack begins here") :
					make("button", {type: "button", class: "link", onclick: () => this.showFunction(other)}, data.functions.name[other]),
				make("span", {class: "place"}, other < 0 ? "" : this.placeOf(other))))))) : make("p", {class: "faint"}, empty);
		const file = data.files[data.functions.file[func]][0], line = data.functions.line[func];
		place.replaceChildren(make("h2", {}, this.nameCell(func)),
			make("p", {class: "place"}, python && line ? `${file}:${line}` : file),
			make("p", {}, ...data.events.map((event, i) => {
				const of = model.figures(i), share = (column) => percent(of.functions[column][func] / (of.whole || 1)) || "0.0%";
				return make("span", {class: "fact"}, `${event.name}: ${share("self")} self, ${share("total")} total`);
			})),
			make("p", {}, python ? make("button", {type: "button", id: "panel-source", onclick: () => this.showSource(func)}, "Source") : null,
				make("button", {type: "button", id: "panel-flame", onclick: () => this.showInFlame(func)}, "In the flame graph")),
			make("h3", {}, "Called by"), list(callers, "Nothing."),
			make("h3", {}, "Calls"), list(callees, "Nothing that was sampled."));
	}

	/* Going places */

	show(tab) {
		this.tab = tab;
		this.refresh();
		const focus = {flame: "#flame-canvas", source: "#source-text", functions: "#functions-table tr[tabindex='0']",
			lines: "#lines-table tr[tabindex='0']"}[tab];
		const element = focus && document.querySelector(focus);
		if (element)
			element.focus({preventScroll: true});
	}

	showFunction(func) {
		this.func = func;
		this.functions.current = func;
		this.show("functions");
		const chosen = document.querySelector("#functions-table tr[aria-selected='true']");
		if (chosen)
			chosen.scrollIntoView({block: "nearest"});
	}

	/* Where the function is hottest, or a line of it. */
	showSource(func, line) {
		const {model} = this, {functions} = model.data;
		if (func < 0 || functions.kind[func] !== PYTHON)
			return;
		if (line === undefined) {
			const {lines} = model.figures(this.event);
			let best = -1;
			model.lines.forEach((row, i) => {
				if (row.func === func && lines.totalSamples[i] && (best < 0 || lines.total[i] > lines.total[best]))
					best = i;
			});
			line = best < 0 ? functions.line[func] : model.lines[best].line;
		}
		this.func = func;
		this.source.file = functions.file[func];
		this.show("source");
		this.source.show(functions.file[func], line);
	}

	showFile(file) {
		this.source.file = file;
		this.show("source");
		this.source.show(file, 0);
	}

	showInFlame(func) {
		this.flame.zoomPath = [];
		this.show("flame");
		this.flame.showFunction(func);
	}

	select(selection) {
		this.model.select(selection);
		this.refresh();
	}

	/* Search: part of a name or of a file; between slashes a regular expression. */
	searchFor(text) {
		$("search").value = text;
		const {functions, files} = this.model.data;
		this.matched = null;
		this.matcher = null;
		$("search").setCustomValidity("");
		if (text) {
			let test = (name) => name.toLowerCase().includes(text.toLowerCase());
			if (text.length > 2 && text.startsWith("/") && text.endsWith("/")) {
				try {
					const pattern = new RegExp(text.slice(1, -1), "i");
					test = (name) => pattern.test(name);
				} catch {
					$("search").setCustomValidity("no regular expression");
				}
			}
			const inFile = files.map(([, short]) => test(short));
			this.matcher = inFile;
			this.matched = Uint8Array.from(functions.name, (name, func) => test(name) || inFile[functions.file[func]]);
		}
		this.refresh();
	}

	/* Do search and choice of code let the function through? */
	isWanted(func) {
		return (!this.matched || this.matched[func]) &&
			(this.origin < 0 || this.model.data.functions.origin[func] === this.origin);
	}

	/* Has the row of functions or lines what Reduced asks for, or else any sample? */
	isSeen(table, row) {
		return this.model.data.events.some((_, event) => {
			const figures = this.model.figures(event);
			return figures[table].totalSamples[row] &&
				(!this.reduced || figures[table].total[row] >= REDUCED * figures.whole);
		});
	}

	fileMatches(file) {
		const {functions} = this.model.data;
		if (this.origin >= 0 && !functions.file.some((other, func) => other === file && functions.origin[func] === this.origin))
			return false;
		return !this.matcher || this.matcher[file] ||
			this.model.data.functions.file.some((other, func) => other === file && this.matched[func]);
	}

	tip(words, event) {
		const tip = $("tip");
		tip.hidden = !words;
		if (!words)
			return;
		const [name, place, figures] = words;
		tip.replaceChildren(make("b", {}, name), make("div", {class: "place"}, place), ...figures.map((figure) => make("div", {}, figure)));
		const box = tip.getBoundingClientRect();
		tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
		tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
	}

	refresh() {
		const {model} = this, functions = model.figures(this.event).functions, lines = model.figures(this.event).lines;
		$("reduced").setAttribute("aria-pressed", this.reduced);
		for (const tab of TABS) {
			$("tab-" + tab).setAttribute("aria-selected", tab === this.tab);
			$("tab-" + tab).tabIndex = tab === this.tab ? 0 : -1;
			$(tab).hidden = tab !== this.tab;
		}
		this.timeline.refresh();
		if (this.tab === "flame") {
			this.flame.refresh();
		} else if (this.tab === "functions") {
			this.functions.show([...functions.self.keys()].filter((func) => this.isSeen("functions", func) && this.isWanted(func)));
			if (this.func < 0 && this.functions.rows.length) {
				this.func = this.functions.current = this.functions.sorted()[0];
				this.functions.mark();
			}
			this.drawPanel();
		} else if (this.tab === "lines") {
			this.lines.show([...lines.self.keys()].filter((row) => this.isSeen("lines", row) && this.isWanted(model.lines[row].func)));
		} else if (this.tab === "source") {
			this.source.refresh();
		} else if (this.tab === "modules") {
			this.modulesTable.show(this.modules());
		} else if (this.tab === "threads") {
			this.threadsTable.show(model.threads(this.event).filter((row) => row[2]));
		}
		$("found").textContent = this.matched ? `${counted(this.matched.reduce((sum, hit) => sum + hit, 0), "function")}, ` +
			`${percent(model.shareOf(this.event, this.matched)) || "0.0%"}` : "";
		const mode = this.mode();
		$("legend").replaceChildren(...(this.tab === "flame" ? mode.legend() : []).map(({colour, text, kind}) => {
			const swatch = make("i", {class: "swatch" + (kind === NATIVE ? " native-pattern" : kind === KERNEL ? " kernel-pattern" : "")});
			swatch.hidden = !colour;
			swatch.style.backgroundColor = colour || "";
			return make("span", {}, swatch, text);
		}));
	}

	/* Keys */

	listen() {
		for (const tab of TABS)
			$("tab-" + tab).addEventListener("click", () => this.show(tab));
		document.querySelector("nav").addEventListener("keydown", (event) => {
			const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
			if (!by)
				return;
			this.tab = TABS[(TABS.indexOf(this.tab) + by + TABS.length) % TABS.length];
			this.refresh();
			$("tab-" + this.tab).focus();
			event.preventDefault();
		});
		$("event").addEventListener("change", () => this.setEvent(Number($("event").value)));
		$("colour").addEventListener("change", () => this.setColour($("colour").value));
		$("origin").addEventListener("change", () => this.setOrigin(Number($("origin").value)));
		$("reduced").addEventListener("click", () => this.turnReduced());
		$("theme").addEventListener("click", () => this.turnTheme());
		$("help").addEventListener("click", () => this.help());
		$("search").addEventListener("input", () => this.searchFor($("search").value));
		$("search").addEventListener("keydown", (event) => {
			if (event.key === "Escape") {
				this.searchFor("");
				$("search").blur();
				event.stopPropagation();
			} else if (event.key === "Enter") {
				this.show(this.tab);
			}
		});
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.refresh());
		new ResizeObserver(() => this.refresh()).observe(document.querySelector("main"));
		document.addEventListener("keydown", (event) => this.key(event));
	}

	setEvent(event) {
		this.event = event;
		$("event").value = event;
		this.refresh();
	}

	setColour(key) {
		this.colour = key;
		$("colour").value = key;
		this.refresh();
	}

	setOrigin(origin) {
		this.origin = origin;
		$("origin").value = origin;
		this.refresh();
	}

	turnReduced() {
		this.reduced = !this.reduced;
		this.refresh();
	}

	turnTheme() {
		document.documentElement.dataset.theme = isDark() ? "light" : "dark";
		this.refresh();
	}

	help() {
		this.fillKeys();
		$("keys").showModal();
	}

	escape() {
		const {selection, data} = this.model;
		if (this.tab === "flame" && this.flame.zoomPath.length)
			this.flame.reset();
		else if (this.matched)
			this.searchFor("");
		else if (selection.thread >= 0 || selection.from > 0 || selection.to < data.slices.count)
			this.select({from: 0, to: data.slices.count, thread: -1});
	}

	/* The function that is looked at, wherever that is. */
	chosen() {
		if (this.tab === "flame")
			return (this.flame.focus || this.flame.zoom).func;
		if (this.tab === "lines" && document.activeElement.row !== undefined)
			return this.model.lines[document.activeElement.row].func;
		if (this.tab === "functions" && document.activeElement.row !== undefined)
			return document.activeElement.row;
		return this.func;
	}

	key(event) {
		const {data} = this.model, tag = event.target.tagName;
		if (event.ctrlKey || event.altKey || event.metaKey || tag === "INPUT" || tag === "SELECT" || $("keys").open)
			return;
		const next = (list, at) => list[(list.indexOf(at) + 1) % list.length];
		const actions = {
			"/": () => $("search").focus(), "?": () => this.help(), Escape: () => this.escape(), t: () => this.turnTheme(),
			e: () => this.setEvent(next([...data.events.keys()], this.event)),
			c: () => this.setColour(next(this.modes.map((mode) => mode.key), this.colour)),
			o: () => this.setOrigin(next([...$("origin").options].map(({value}) => Number(value)), this.origin)),
			r: () => this.turnReduced(),
			i: () => this.flameKey(() => this.flame.invert()), u: () => this.flameKey(() => this.flame.flip()),
			s: () => this.showSource(this.chosen()), f: () => this.showInFlame(this.chosen()),
			x: () => this.chosen() >= 0 && this.showFunction(this.chosen()),
			n: () => this.tab === "source" && this.source.step(1), p: () => this.tab === "source" && this.source.step(-1),
		};
		const tab = TABS[Number(event.key) - 1];
		if (tab)
			this.show(tab);
		else if (actions[event.key])
			actions[event.key]();
		else
			return;
		event.preventDefault();
	}

	flameKey(action) {
		if (this.tab === "flame")
			action();
	}
}

let app = null;

readData().then((data) => {
	$("loading").remove();
	app = new App(data);
	document.documentElement.dataset.ready = "yes";
}).catch((error) => {
	document.body.prepend(make("p", {class: "message"}, `The page cannot show its data: ${error.message}`));
	throw error;
});
