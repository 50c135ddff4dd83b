/*
 * When the samples were taken: all of the shown threads above, the busiest threads below. Bars are
 * stacked by kind of code. A drag or Shift with the arrow keys selects a stretch, a click on a
 * thread's name that thread; everything else on the page then shows only that.
 */
const GUTTER = 150, OVERVIEW = 44, LANE = 13, LANES = 6, AXIS = 16, PHASE = 15;
/* The least that a time on the axis has for itself. */
const TICK = 64;

class Timeline {
	constructor(app) {
		this.app = app;
		this.canvas = $("timeline");
		this.count = app.model.data.slices.count;
		/* Phases that the program named have a lane above all. */
		this.phases = app.model.data.phases;
		this.head = this.phases.length ? PHASE : 0;
		this.listen();
	}

	listen() {
		this.canvas.addEventListener("mousedown", (event) => this.press(event));
		window.addEventListener("mousemove", (event) => this.move(event));
		window.addEventListener("mouseup", () => this.release());
		this.canvas.addEventListener("keydown", (event) => this.key(event));
	}

	sliceAt(clientX) {
		const box = this.canvas.getBoundingClientRect();
		const part = (clientX - box.left - GUTTER) / Math.max(1, box.width - GUTTER);
		return Math.max(0, Math.min(this.count, part * this.count));
	}

	press(event) {
		const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
		if (x < GUTTER) {
			const lane = Math.floor((y - this.head - OVERVIEW - 4) / LANE);
			if (lane < 0 || !this.lanes[lane])
				this.app.select({thread: -1});
			else
				this.app.select({thread: this.app.model.selection.thread === this.lanes[lane] ? -1 : this.lanes[lane]});
			return;
		}
		if (y < this.head)
			return this.choosePhase(this.sliceAt(event.clientX));
		this.anchor = this.sliceAt(event.clientX);
		event.preventDefault();
		this.canvas.focus();
	}

	move(event) {
		if (this.anchor === undefined)
			return;
		this.drag = this.sliceAt(event.clientX);
		this.draw();
	}

	/* A click without a drag selects all again. */
	release() {
		if (this.anchor === undefined)
			return;
		const from = Math.floor(Math.min(this.anchor, this.drag ?? this.anchor));
		const to = Math.ceil(Math.max(this.anchor, this.drag ?? this.anchor));
		const dragged = this.drag !== undefined && Math.abs(this.drag - this.anchor) * this.slicePixels() > 3;
		this.anchor = this.drag = undefined;
		if (dragged)
			this.app.select({from, to: Math.max(to, from + 1)});
		else
			this.app.select({from: 0, to: this.count});
	}

	/* The shortest phase there, which lies within the others. */
	choosePhase(slice) {
		const {width} = this.app.model.data.slices, grain = 3 / this.slicePixels();
		const there = this.phases.filter(([, begin, end]) => begin / width - grain <= slice && end / width + grain >= slice);
		const [phase] = there.sort((a, b) => (a[2] - a[1]) - (b[2] - b[1]));
		if (phase) {
			const from = Math.max(0, Math.min(this.count - 1, Math.floor(phase[1] / width)));
			this.app.select({from, to: Math.max(from + 1, Math.min(this.count, Math.ceil(phase[2] / width)))});
		}
	}

	drawPhases(context, room, letter, style) {
		const whole = this.app.model.data.slices.width * this.count;
		let free = 0;
		for (const [name, begin, end] of this.phases) {
			const left = GUTTER + Math.max(0, begin / whole) * room, wide = Math.max(1, Math.min(1, end / whole) * room + GUTTER - left);
			context.fillStyle = style.getPropertyValue("--chosen");
			context.fillRect(left, 1, wide, PHASE - 3);
			context.fillStyle = style.getPropertyValue("--accent");
			context.fillRect(left, 1, 1, PHASE - 3);
			const text = left + 3 >= free ? cutText(name, wide - 6, letter) : "";
			context.fillStyle = style.getPropertyValue("--ink");
			context.fillText(text, left + 4, PHASE / 2);
			if (text)
				free = left + 4 + text.length * letter;
		}
	}

	slicePixels() {
		return Math.max(1, this.canvas.clientWidth - GUTTER) / this.count;
	}

	key(event) {
		const {from, to} = this.app.model.selection, step = Math.max(1, Math.round(this.count / 50));
		const all = from === 0 && to === this.count, sign = {ArrowLeft: -1, ArrowRight: 1}[event.key];
		if (event.key === "Escape" && !(all && this.app.model.selection.thread < 0)) {
			this.app.select({from: 0, to: this.count, thread: -1});
		} else if (sign && all) {
			const wide = Math.max(1, Math.round(this.count / 10));
			this.app.select(sign > 0 ? {from: 0, to: wide} : {from: this.count - wide, to: this.count});
		} else if (sign && event.shiftKey) {
			this.app.select({from, to: Math.max(from + 1, Math.min(this.count, to + sign * step))});
		} else if (sign) {
			const move = Math.max(-from, Math.min(this.count - to, sign * step));
			this.app.select({from: from + move, to: to + move});
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}

	refresh() {
		const {app} = this, {model} = app;
		/* A profile without times has one slice. */
		$("time").hidden = this.count < 2;
		if (this.count < 2)
			return;
		const key = `${app.event}:${model.selection.thread}`;
		if (this.key_ !== key) {
			this.key_ = key;
			this.sums = model.overTime(app.event, model.selection.thread);
			const totals = new Float64Array(model.data.threads.length), rows = model.rows;
			for (let i = 0; i < rows.stack.length; i++)
				if (rows.event[i] === app.event)
					totals[rows.thread[i]] += rows.period[i];
			const order = [...totals.keys()].filter((thread) => totals[thread]).sort((a, b) => totals[b] - totals[a]);
			this.lanes = order.length > 1 ? order.slice(0, LANES) : [];
			if (model.selection.thread >= 0 && this.lanes.length && !this.lanes.includes(model.selection.thread))
				this.lanes[LANES - 1] = model.selection.thread;
			this.more = order.length - this.lanes.length;
			this.laneSums = this.lanes.map((thread) => model.overTime(app.event, thread));
		}
		this.draw();
	}

	draw() {
		const {app} = this, {selection, data} = app.model;
		const width = $("time").clientWidth - 24, lanes = this.lanes.length * LANE;
		const {head} = this, height = head + OVERVIEW + 4 + lanes + AXIS, context = fitCanvas(this.canvas, width, height);
		const style = getComputedStyle(document.documentElement);
		const faint = style.getPropertyValue("--faint"), ink = style.getPropertyValue("--ink");
		const line = style.getPropertyValue("--line");
		this.kinds = ["--python", "--native", "--kernel"].map((name) => style.getPropertyValue(name));
		context.font = style.getPropertyValue("--small-font");
		context.textBaseline = "middle";
		const letter = context.measureText("mmmmmmmmmm").width / 10;
		context.fillStyle = ink;
		context.fillText(cutText(selection.thread < 0 ? "all threads" : app.threadName(selection.thread), GUTTER - 10, letter),
			2, head + OVERVIEW / 2);
		if (head)
			this.drawPhases(context, width - GUTTER, letter, style);
		this.bars(context, this.sums, GUTTER, head + 2, width - GUTTER, OVERVIEW - 2, false);
		this.lanes.forEach((thread, i) => {
			const y = head + OVERVIEW + 4 + i * LANE;
			context.fillStyle = thread === selection.thread ? ink : faint;
			context.fillText(cutText((thread === selection.thread ? "▸ " : "") + app.threadName(thread), GUTTER - 10, letter), 2,
				y + LANE / 2);
			this.bars(context, this.laneSums[i], GUTTER, y + 1, width - GUTTER, LANE - 2, true);
		});
		this.axis(context, width, height, data.slices, faint, line);
		this.cover(context, width, height - AXIS, selection, style);
		$("selection").textContent = this.words(selection, data.slices);
	}

	bars(context, sums, left, top, width, height, lane) {
		const per = width / this.count, columns = Math.min(this.count, Math.ceil(width / 4)), wide = width / columns;
		const heights = new Float64Array(3 * columns);
		for (let i = 0; i < this.count; i++)
			for (let kind = 0; kind < 3; kind++)
				heights[3 * Math.min(columns - 1, Math.floor(i * per / wide)) + kind] += sums[3 * i + kind];
		let most = 0;
		for (let i = 0; i < columns; i++)
			most = Math.max(most, heights[3 * i] + heights[3 * i + 1] + heights[3 * i + 2]);
		for (let i = 0; most && i < columns; i++) {
			let y = top + height;
			for (let kind = 0; kind < 3; kind++) {
				const high = heights[3 * i + kind] / most * height;
				if (high <= 0)
					continue;
				y -= high;
				context.fillStyle = this.kinds[kind];
				context.globalAlpha = lane ? 0.8 : 1;
				context.fillRect(left + i * wide, y, Math.max(wide - (wide > 4 ? 1 : 0), 0.7), high);
			}
		}
		context.globalAlpha = 1;
	}

	axis(context, width, height, slices, faint, line) {
		const whole = slices.width * slices.count, room = width - GUTTER, y = height - AXIS;
		const most = Math.min(10, Math.max(2, room / TICK));
		let step = Math.pow(10, Math.floor(Math.log10(whole / 8)));
		for (const times of [1, 2, 5, 10, 20, 50])
			if (whole / (step * times) <= most) {
				step *= times;
				break;
			}
		context.fillStyle = line;
		context.fillRect(GUTTER, y, room, 1);
		context.textAlign = "center";
		for (let at = 0; at <= whole; at += step) {
			const x = GUTTER + at / whole * room;
			context.fillStyle = line;
			context.fillRect(x, y, 1, 4);
			context.fillStyle = faint;
			context.textAlign = at === 0 ? "left" : x > width - 30 ? "right" : "center";
			context.fillText(at === 0 ? "0" : duration(at), x, y + 10);
		}
		context.textAlign = "left";
		if (this.lanes.length && this.more > 0)
			context.fillText(`and ${counted(this.more, "thread")}`, 2, y + 9);
	}

	cover(context, width, height, selection, style) {
		const room = width - GUTTER;
		let {from, to} = selection;
		if (this.drag !== undefined)
			[from, to] = [Math.min(this.anchor, this.drag), Math.max(this.anchor, this.drag)];
		if (from <= 0 && to >= this.count)
			return;
		const left = GUTTER + from / this.count * room, right = GUTTER + to / this.count * room;
		context.fillStyle = style.getPropertyValue("--cover");
		context.fillRect(GUTTER, 0, left - GUTTER, height);
		context.fillRect(right, 0, width - right, height);
		context.fillStyle = style.getPropertyValue("--accent");
		context.fillRect(left - 1, 0, 2, height);
		context.fillRect(right - 1, 0, 2, height);
	}

	words({from, to, thread}, slices) {
		const parts = [];
		if (from > 0 || to < this.count)
			parts.push(`${duration(from * slices.width)} to ${duration(to * slices.width)}`);
		if (thread >= 0)
			parts.push(this.app.threadName(thread));
		return parts.length ? `Only ${parts.join(", ")}; Escape shows all` : "";
	}
}
