/*
 * The flame graph, on a canvas that is as large as what is seen of it.
 *
 * Why it is not a library's: README.md has the measurements. Only frames of half a pixel and more
 * are made and drawn, so the cost is that of the screen and not of the profile.
 */
const ROW = 19, NARROWEST = 0.5, LABEL_FROM = 26;

class Flame {
	constructor(app) {
		this.app = app;
		this.inverted = this.upward = false;
		this.zoomPath = [];
		this.focusPath = null;
		this.hover = null;
		this.canvas = $("flame-canvas");
		this.scroll = $("flame-scroll");
		this.listen();
	}

	listen() {
		const at = (event) => {
			const box = this.canvas.getBoundingClientRect();
			return this.hit(event.clientX - box.left, event.clientY - box.top + this.scroll.scrollTop);
		};
		this.canvas.addEventListener("mousemove", (event) => this.setHover(at(event), event));
		this.canvas.addEventListener("mouseleave", () => this.setHover(null));
		this.canvas.addEventListener("click", (event) => this.choose(at(event), true));
		this.canvas.addEventListener("dblclick", () => this.showSource());
		this.canvas.addEventListener("keydown", (event) => this.key(event));
		this.canvas.addEventListener("focus", () => this.draw());
		this.canvas.addEventListener("blur", () => this.draw());
		this.scroll.addEventListener("scroll", () => this.draw());
		$("invert").addEventListener("click", () => this.invert());
		$("flip").addEventListener("click", () => this.flip());
		$("reset").addEventListener("click", () => this.reset());
	}

	/* The selection, the event or the direction changed: the tree is made anew, and the frames that
	 * were looked at are found again by their path. */
	refresh() {
		const {model, event} = this.app, key = `${model.version}:${event}:${this.inverted}`;
		if (this.key_ !== key) {
			this.tree = makeTree(model, event, this.inverted);
			this.key_ = key;
		}
		this.zoom = this.find(this.zoomPath) || this.tree.root;
		this.focus = this.focusPath && this.find(this.focusPath);
		this.patterns = makePatterns();
		this.place();
		this.draw();
		this.showFrame();
		this.showPath();
	}

	find(path) {
		let node = this.tree.root;
		for (const func of path) {
			node = node.kids().find((kid) => kid.func === func);
			if (!node)
				return null;
		}
		return node;
	}

	pathOf(node) {
		const path = [];
		for (; node && node.parent; node = node.parent)
			path.unshift(node.func);
		return path;
	}

	/* Where every frame lies: rects[depth] from left to right. */
	place() {
		const width = this.width = Math.max(100, this.scroll.clientWidth), rects = this.rects = [];
		const put = (node, x, w) => (rects[node.depth] || (rects[node.depth] = [])).push({node, x, w});
		for (let node = this.zoom.parent; node; node = node.parent)
			put(node, 0, width);
		const open = [{node: this.zoom, x: 0, w: width}];
		while (open.length) {
			const {node, x, w} = open.pop();
			put(node, x, w);
			if (!node.total)
				continue;
			let left = x;
			for (const kid of node.kids()) {
				const wide = w * kid.total / node.total;
				if (wide < NARROWEST)
					break;
				open.push({node: kid, x: left, w: wide});
				left += wide;
			}
		}
		for (const row of rects)
			row.sort((a, b) => a.x - b.x);
		this.height = rects.length * ROW + 4;
		$("flame-space").style.height = this.height + "px";
		if (this.upward)
			this.scroll.scrollTop = this.height;
	}

	top(depth) {
		const height = Math.max(this.height, this.scroll.clientHeight);
		return this.upward ? height - 2 - (depth + 1) * ROW : 2 + depth * ROW;
	}

	draw() {
		if (!this.rects || !this.scroll.clientHeight)
			return;
		const seen = this.scroll.clientHeight, offset = this.scroll.scrollTop, {app} = this;
		const context = fitCanvas(this.canvas, this.width, seen);
		const style = getComputedStyle(document.documentElement), mode = app.mode();
		context.font = style.getPropertyValue("--flame-font");
		context.textBaseline = "middle";
		this.letter = context.measureText("mmmmmmmmmm").width / 10;
		this.ink = style.getPropertyValue("--ink");
		this.mark = style.getPropertyValue("--mark");
		this.ground = style.getPropertyValue("--ground");
		for (let depth = 0; depth < this.rects.length; depth++) {
			const y = this.top(depth) - offset;
			if (y > -ROW && y < seen)
				for (const rect of this.rects[depth])
					this.drawFrame(context, rect, y, mode);
		}
		if (document.activeElement === this.canvas && this.focus)
			this.outline(context, this.focus, offset, 2, this.ink);
		if (this.hover)
			this.outline(context, this.hover, offset, 1, this.ink);
	}

	drawFrame(context, {node, x, w}, y, mode) {
		const {app} = this, wide = Math.max(w - 1, 0.5), matched = app.matched;
		const found = matched && node.func >= 0 && matched[node.func];
		context.globalAlpha = matched && !found ? 0.4 : node.depth < this.zoom.depth ? 0.55 : 1;
		context.fillStyle = node.func < 0 ? (isDark() ? "#3a4048" : "#dfe3e8") : found ? this.mark : mode.colour(node);
		context.fillRect(x, y, wide, ROW - 1);
		const kind = node.func < 0 ? PYTHON : app.model.data.functions.kind[node.func];
		if (kind !== PYTHON && w > 3) {
			context.fillStyle = this.patterns[kind];
			context.fillRect(x, y, wide, ROW - 1);
		}
		if (w < LABEL_FROM)
			return;
		context.fillStyle = found && isDark() ? this.ground : this.ink;
		let text = this.label(node);
		const figure = mode.text && node.func >= 0 ? mode.text(node) : "";
		if (figure && w > 120)
			text = cutText(text, w - 12 - (figure.length + 2) * this.letter, this.letter) + "  " + figure;
		context.fillText(cutText(text, w - 8, this.letter), x + 4, y + ROW / 2);
		context.globalAlpha = 1;
	}

	outline(context, node, offset, width, colour) {
		const rect = (this.rects[node.depth] || []).find((other) => other.node === node);
		if (!rect)
			return;
		context.globalAlpha = 1;
		context.strokeStyle = colour;
		context.lineWidth = width;
		context.strokeRect(rect.x + width / 2, this.top(node.depth) - offset + width / 2,
			Math.max(rect.w - 1 - width, 1), ROW - 1 - width);
	}

	label(node) {
		if (node.func >= 0)
			return this.app.model.data.functions.name[node.func];
		return node.parent ? "[no stack]" : "all";
	}

	hit(x, y) {
		const depth = Math.floor(this.upward ? (this.top(0) + ROW - y) / ROW : (y - 2) / ROW);
		return ((this.rects[depth] || []).find((rect) => x >= rect.x && x < rect.x + rect.w) || {}).node || null;
	}

	setHover(node, event) {
		if (this.hover !== node) {
			this.hover = node;
			this.draw();
			this.showFrame();
			this.canvas.style.cursor = node ? "pointer" : "";
		}
		this.app.tip(node && node.func >= 0 ? this.describe(node) : null, event);
	}

	/* The words of a frame: [name, place, [figures]]. */
	describe(node) {
		const {app} = this, {model} = app, whole = model.sums(app.event).whole || 1;
		const figures = [`${percent(node.sum(app.event) / whole) || "0.0%"} of ${app.eventName()}`,
			counted(node.samples(app.event), "sample")];
		const own = node.own(app.event);
		if (node.func >= 0)
			figures.push(own > 0 ? `${percent(own / whole) || "0.0%"} in itself` : "none in itself");
		if (node.parent && node.parent.parent && node.parent.total)
			figures.push(`${percent(node.total / node.parent.total)} of ${this.inverted ? "what it calls" : "its caller"}`);
		for (const metric of model.data.metrics.filter(({shown}) => shown)) {
			const value = metricValue(metric, (event) => node.sum(event), (event) => node.samples(event));
			if (value !== null)
				figures.push(`${metric.heading} ${metricText(metric, value)}`);
		}
		return [this.label(node), node.func >= 0 ? app.placeOf(node.func) : "", figures];
	}

	/* The line below the graph: what the mouse is on, else what was chosen. */
	showFrame() {
		const bar = $("flame-frame"), node = this.hover || this.focus || this.zoom;
		const [name, place, figures] = this.describe(node);
		bar.replaceChildren(make("b", {}, name), make("span", {class: "place"}, place),
			make("span", {class: "figures"}, figures.join("  ·  ")), make("span", {class: "grow"}));
		if (node === this.hover || node.func < 0)
			return;
		const python = this.app.model.data.functions.kind[node.func] === PYTHON;
		if (python)
			bar.append(make("button", {type: "button", id: "frame-source", onclick: () => this.showSource(), title: "s"},
				"Source"));
		bar.append(make("button", {type: "button", id: "frame-function", onclick: () => this.app.showFunction(node.func),
			title: "c"}, "Callers and callees"));
	}

	showPath() {
		const path = $("path");
		path.replaceChildren();
		for (let node = this.zoom; node && node.parent; node = node.parent) {
			const target = node;
			path.prepend(make("span", {class: "step"}, "›"), make("button", {type: "button", class: "link",
				onclick: () => this.choose(target, true)}, this.label(node)));
		}
		$("reset").disabled = !this.zoom.parent;
	}

	choose(node, zoom) {
		if (!node)
			return;
		this.focusPath = this.pathOf(node);
		if (zoom)
			this.zoomPath = this.focusPath;
		this.app.tip(null);
		this.hover = null;
		this.refresh();
		this.reveal(node.depth);
	}

	reveal(depth) {
		const y = this.top(depth), seen = this.scroll.clientHeight;
		if (y < this.scroll.scrollTop)
			this.scroll.scrollTop = y - ROW;
		else if (y + ROW > this.scroll.scrollTop + seen)
			this.scroll.scrollTop = y + 2 * ROW - seen;
	}

	reset() {
		this.zoomPath = [];
		this.refresh();
	}

	invert() {
		this.inverted = !this.inverted;
		this.zoomPath = [];
		this.focusPath = null;
		$("invert").setAttribute("aria-pressed", this.inverted);
		this.refresh();
	}

	flip() {
		this.upward = !this.upward;
		$("flip").setAttribute("aria-pressed", this.upward);
		this.refresh();
	}

	/* A frame of this function that is as large as any, shown. */
	showFunction(func) {
		let best = null;
		for (const row of this.rects)
			for (const rect of row)
				if (rect.node.func === func && (!best || rect.node.total > best.total))
					best = rect.node;
		if (best)
			this.choose(best, false);
	}

	showSource() {
		const node = this.focus || this.zoom;
		if (node.func >= 0)
			this.app.showSource(node.func);
	}

	/* Up and down are those of the screen. */
	key(event) {
		const node = this.focus || this.zoom;
		const siblings = node.parent ? this.rects[node.depth].map((rect) => rect.node) : [node];
		const at = siblings.indexOf(node), outward = this.upward ? "ArrowDown" : "ArrowUp";
		const moves = {
			ArrowLeft: () => siblings[at - 1],
			ArrowRight: () => siblings[at + 1],
			Home: () => siblings[0],
			End: () => siblings[siblings.length - 1],
		};
		const inward = this.upward ? "ArrowUp" : "ArrowDown";
		moves[outward] = () => node.parent;
		moves[inward] = () => node.kids()[0];
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (moves[event.key]) {
			const next = moves[event.key]();
			if (next)
				this.choose(next, next.depth < this.zoom.depth);
		} else if (event.key === "Enter") {
			this.choose(node, true);
		} else if (event.key === "Backspace") {
			if (this.zoom.parent)
				this.choose(this.zoom.parent, true);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}
}
