/*
 * Figures out of the data, for what is selected: a stretch of time, a thread.
 *
 * Stacks are a tree whose parents have lower numbers than their children, so sums over subtrees
 * are one loop from the end. What does not depend on the selection (which frame is the first of its
 * function on its path, the tree of functions) is computed once; sums are kept per event until the
 * selection changes.
 */
class Model {
	constructor(data) {
		this.data = data;
		this.selection = {from: 0, to: data.slices.count, thread: -1};
		this.version = 0;
		this.readStacks(data.stacks);
		this.readRows(data.rows);
		this.findFirsts();
		this.foldFunctions();
		this.cache = new Map();
		this.whole = data.events.map((_, event) => this.sums(event).whole);
	}

	readStacks(stacks) {
		const count = stacks.up.length + 1;
		this.stacks = count;
		this.parent = new Int32Array(count);
		this.func = new Int32Array(count).fill(-1);
		this.line = new Int32Array(count);
		this.lineRow = new Int32Array(count).fill(-1); /* which row of lines */
		this.inner = new Int32Array(count);            /* innermost Python stack, 0: none */
		this.kind = new Uint8Array(count).fill(NATIVE); /* of the code that ran, which may not be shown */
		this.lines = [];
		const kind = this.data.functions.kind, rows = new Map();
		for (let i = 1; i < count; i++) {
			const func = stacks.function[i - 1], line = stacks.line[i - 1];
			this.parent[i] = i - stacks.up[i - 1];
			this.func[i] = func;
			this.line[i] = line;
			this.kind[i] = stacks.kind ? stacks.kind[i - 1] : kind[func];
			this.inner[i] = kind[func] === PYTHON ? i : this.inner[this.parent[i]];
			if (kind[func] !== PYTHON)
				continue;
			const key = func * 0x1000000 + line;
			let row = rows.get(key);
			if (row === undefined) {
				row = this.lines.length;
				rows.set(key, row);
				this.lines.push({func, line});
			}
			this.lineRow[i] = row;
		}
	}

	readRows(rows) {
		const count = rows.stack.length;
		/* What is the same in every row is one number. */
		const column = (Type, values) => typeof values === "number" ? new Type(count).fill(values) : Type.from(values);
		this.rows = {
			slice: new Int32Array(count), stack: new Int32Array(count), event: column(Uint16Array, rows.event),
			thread: column(Int32Array, rows.thread), samples: column(Float64Array, rows.samples),
			period: column(Float64Array, rows.period),
		};
		for (let i = 0, slice = 0, stack = 0; i < count; i++) {
			this.rows.slice[i] = slice += rows.slice[i];
			this.rows.stack[i] = stack += rows.stack[i];
		}
		if (this.data.counted.stack.length)
			this.addCounted(this.data.counted);
	}

	/* Of an event that was counted along at another's samples the sums by thread and stack are
	 * known: each sample there gets its part. */
	addCounted(counted) {
		const {rows} = this, {events} = this.data, places = new Map(), count = counted.stack.length;
		const at = (values, i) => typeof values === "number" ? values : values[i];
		for (let i = 0, stack = 0; i < count; i++) {
			stack += counted.stack[i];
			const event = at(counted.event, i), key = `${events[event].leader}:${at(counted.thread, i)}:${stack}`;
			if (!places.has(key))
				places.set(key, {samples: 0, sums: []});
			places.get(key).sums.push([event, at(counted.period, i)]);
		}
		const placeOf = Array.from(rows.stack, (stack, i) => places.get(`${rows.event[i]}:${rows.thread[i]}:${stack}`));
		placeOf.forEach((place, i) => place && (place.samples += rows.samples[i]));
		const more = {slice: [], stack: [], event: [], thread: [], samples: [], period: []};
		placeOf.forEach((place, i) => {
			for (const [event, period] of place ? place.sums : []) {
				for (const name of ["slice", "stack", "thread", "samples"])
					more[name].push(rows[name][i]);
				more.event.push(event);
				more.period.push(period * rows.samples[i] / place.samples);
			}
		});
		for (const name of Object.keys(rows)) {
			const joined = new rows[name].constructor(rows[name].length + more[name].length);
			joined.set(rows[name]);
			joined.set(more[name], rows[name].length);
			rows[name] = joined;
		}
	}

	/* A function's total counts a sample once, however often the function is on the stack: at the
	 * outermost of its frames. Likewise a line's. */
	findFirsts() {
		const next = new Int32Array(this.stacks), child = new Int32Array(this.stacks);
		for (let i = this.stacks - 1; i > 0; i--) {
			next[i] = child[this.parent[i]];
			child[this.parent[i]] = i;
		}
		this.firstFunc = new Uint8Array(this.stacks);
		this.firstLine = new Uint8Array(this.stacks);
		const funcs = new Int32Array(this.data.functions.name.length), lines = new Int32Array(this.lines.length);
		let at = child[0];
		while (at) {
			this.firstFunc[at] = funcs[this.func[at]]++ === 0;
			if (this.lineRow[at] >= 0)
				this.firstLine[at] = lines[this.lineRow[at]]++ === 0;
			if (child[at]) {
				at = child[at];
				continue;
			}
			for (;;) {
				funcs[this.func[at]]--;
				if (this.lineRow[at] >= 0)
					lines[this.lineRow[at]]--;
				if (next[at]) {
					at = next[at];
					break;
				}
				at = this.parent[at];
				if (!at)
					break;
			}
		}
		this.child = child;
		this.next = next;
	}

	/* The tree of functions: stacks that differ in lines only are one fold. */
	foldFunctions() {
		const known = new Map(), functions = this.data.functions.name.length + 1;
		this.foldOf = new Int32Array(this.stacks);
		const parent = [0], func = [-1];
		for (let i = 1; i < this.stacks; i++) {
			const up = this.foldOf[this.parent[i]], key = up * functions + this.func[i];
			let fold = known.get(key);
			if (fold === undefined) {
				fold = parent.length;
				known.set(key, fold);
				parent.push(up);
				func.push(this.func[i]);
			}
			this.foldOf[i] = fold;
		}
		this.foldParent = Int32Array.from(parent);
		this.foldFunc = Int32Array.from(func);
		this.foldNext = new Int32Array(parent.length);
		this.foldChild = new Int32Array(parent.length);
		for (let i = parent.length - 1; i > 0; i--) {
			this.foldNext[i] = this.foldChild[parent[i]];
			this.foldChild[parent[i]] = i;
		}
	}

	select(selection) {
		Object.assign(this.selection, selection);
		this.cache.clear();
		this.version++;
	}

	kept(key, make) {
		if (!this.cache.has(key))
			this.cache.set(key, make());
		return this.cache.get(key);
	}

	/* By stack: own and total period, own and total samples; and the whole. */
	sums(event) {
		return this.kept("sums" + event, () => {
			const {from, to, thread} = this.selection, rows = this.rows;
			const own = new Float64Array(this.stacks), ownSamples = new Float64Array(this.stacks);
			let whole = 0, wholeSamples = 0;
			for (let i = 0; i < rows.stack.length; i++) {
				if (rows.event[i] !== event || rows.slice[i] < from || rows.slice[i] >= to ||
				    (thread >= 0 && rows.thread[i] !== thread))
					continue;
				own[rows.stack[i]] += rows.period[i];
				ownSamples[rows.stack[i]] += rows.samples[i];
				whole += rows.period[i];
				wholeSamples += rows.samples[i];
			}
			return {own, ownSamples, total: this.upwards(own), totalSamples: this.upwards(ownSamples), whole,
				wholeSamples};
		});
	}

	upwards(own) {
		const total = own.slice();
		for (let i = this.stacks - 1; i > 0; i--)
			total[this.parent[i]] += total[i];
		return total;
	}

	/* By fold: own and total period, and total samples. */
	folds(event) {
		return this.kept("folds" + event, () => {
			const sums = this.sums(event), count = this.foldParent.length;
			const own = new Float64Array(count), total = new Float64Array(count), samples = new Float64Array(count);
			for (let i = 0; i < this.stacks; i++) {
				own[this.foldOf[i]] += sums.own[i];
				samples[this.foldOf[i]] += sums.ownSamples[i];
			}
			total.set(own);
			const ownSamples = samples.slice();
			for (let i = count - 1; i > 0; i--) {
				total[this.foldParent[i]] += total[i];
				samples[this.foldParent[i]] += samples[i];
			}
			return {own, total, samples, ownSamples};
		});
	}

	/*
	 * By function and by line, as `pyperf report` defines them: a function's self is what was
	 * sampled in its own code; a line's is all for which it is the innermost Python line, and
	 * `split` tells by the kind of code where that went.
	 */
	figures(event) {
		return this.kept("figures" + event, () => {
			const sums = this.sums(event);
			const functions = newFigures(this.data.functions.name.length), lines = newFigures(this.lines.length);
			for (let i = 1; i < this.stacks; i++) {
				const func = this.func[i], line = this.lineRow[i];
				if (this.firstFunc[i] && sums.totalSamples[i]) {
					functions.total[func] += sums.total[i];
					functions.totalSamples[func] += sums.totalSamples[i];
				}
				if (line >= 0 && this.firstLine[i] && sums.totalSamples[i]) {
					lines.total[line] += sums.total[i];
					lines.totalSamples[line] += sums.totalSamples[i];
				}
				if (!sums.ownSamples[i])
					continue;
				functions.self[func] += sums.own[i];
				functions.selfSamples[func] += sums.ownSamples[i];
				const inner = this.inner[i];
				if (!inner)
					continue;
				const row = this.lineRow[inner];
				functions.split[3 * this.func[inner] + this.kind[i]] += sums.own[i];
				lines.split[3 * row + this.kind[i]] += sums.own[i];
				lines.self[row] += sums.own[i];
				lines.selfSamples[row] += sums.ownSamples[i];
			}
			return {functions, lines, whole: sums.whole, wholeSamples: sums.wholeSamples};
		});
	}

	/* Callers and callees of a function: [[function, period], ...], most first. */
	neighbours(event, func) {
		return this.kept(`near${event}:${func}`, () => {
			const {total} = this.sums(event), callers = new Map(), callees = new Map();
			const add = (map, key, value) => map.set(key, (map.get(key) || 0) + value);
			for (let i = 1; i < this.stacks; i++) {
				if (!total[i])
					continue;
				const up = this.parent[i];
				if (this.func[i] === func && this.firstFunc[i])
					add(callers, this.func[up], total[i]);
				if (up && this.func[up] === func && !this.pairAbove(up, func, this.func[i]))
					add(callees, this.func[i], total[i]);
			}
			const sorted = (map) => [...map].sort((a, b) => b[1] - a[1]);
			return {callers: sorted(callers), callees: sorted(callees)};
		});
	}

	pairAbove(stack, caller, callee) {
		for (; stack; stack = this.parent[stack])
			if (this.func[stack] === callee && this.parent[stack] && this.func[this.parent[stack]] === caller)
				return true;
		return false;
	}

	/* What a line calls directly. */
	calledOn(event, row) {
		return this.kept(`called${event}:${row}`, () => {
			const {total} = this.sums(event), callees = new Map();
			for (let i = 1; i < this.stacks; i++)
				if (total[i] && this.lineRow[this.parent[i]] === row)
					callees.set(this.func[i], (callees.get(this.func[i]) || 0) + total[i]);
			return [...callees].sort((a, b) => b[1] - a[1]);
		});
	}

	/* By slice of time and kind of code: the period, of all threads or of one. */
	overTime(event, thread) {
		const rows = this.rows, sums = new Float64Array(3 * this.data.slices.count);
		for (let i = 0; i < rows.stack.length; i++) {
			if (rows.event[i] !== event || (thread >= 0 && rows.thread[i] !== thread))
				continue;
			sums[3 * rows.slice[i] + this.kind[rows.stack[i]]] += rows.period[i];
		}
		return sums;
	}

	/* By thread, within the stretch of time: [thread, period, samples], most first. */
	threads(event) {
		return this.kept("threads" + event, () => {
			const {from, to} = this.selection, rows = this.rows;
			const sums = this.data.threads.map((_, thread) => [thread, 0, 0]);
			for (let i = 0; i < rows.stack.length; i++)
				if (rows.event[i] === event && rows.slice[i] >= from && rows.slice[i] < to) {
					sums[rows.thread[i]][1] += rows.period[i];
					sums[rows.thread[i]][2] += rows.samples[i];
				}
			return sums.sort((a, b) => b[1] - a[1]);
		});
	}

	/* Part of the whole that has any of the functions on its stack. */
	shareOf(event, matched) {
		const sums = this.sums(event), inside = new Uint8Array(this.stacks);
		let part = 0;
		for (let i = 1; i < this.stacks; i++) {
			inside[i] = inside[this.parent[i]] || matched[this.func[i]];
			if (inside[i])
				part += sums.own[i];
		}
		return sums.whole ? part / sums.whole : 0;
	}
}

function newFigures(count) {
	const column = () => new Float64Array(count);
	return {self: column(), total: column(), selfSamples: column(), totalSamples: column(),
		split: new Float64Array(3 * count)};
}

/*
 * Trees for the flame graph. Nodes are made when they are looked at: of a tree of a million frames
 * a screen shows a few thousand. node.sum(event), node.own(event) and node.samples(event) are
 * figures; kids() are its children, the largest first.
 */
class DownNode {
	constructor(tree, parent, fold) {
		this.tree = tree;
		this.parent = parent;
		this.fold = fold;
		this.func = tree.model.foldFunc[fold];
		this.depth = parent ? parent.depth + 1 : 0;
		this.total = tree.totals[fold];
		this.made = null;
	}

	kids() {
		if (!this.made) {
			const {model, totals} = this.tree;
			this.made = [];
			for (let i = model.foldChild[this.fold]; i; i = model.foldNext[i])
				if (totals[i] > 0)
					this.made.push(new DownNode(this.tree, this, i));
			this.made.sort((a, b) => b.total - a.total);
		}
		return this.made;
	}

	sum(event) {
		return this.tree.model.folds(event).total[this.fold];
	}

	samples(event) {
		return this.tree.model.folds(event).samples[this.fold];
	}

	own(event) {
		return this.tree.model.folds(event).own[this.fold];
	}
}

/* From the innermost function to its callers: `leaves` are the folds that the node counts and `at`
 * how far up each of them has come. */
class UpNode {
	constructor(tree, parent, func, leaves, at) {
		this.tree = tree;
		this.parent = parent;
		this.func = func;
		this.leaves = leaves;
		this.at = at;
		this.depth = parent ? parent.depth + 1 : 0;
		this.total = 0;
		for (const leaf of leaves)
			this.total += tree.owns[leaf];
		this.made = null;
	}

	/* Leaves by the function that they have come to: counted, then put into one array for all, of
	 * which each function has a part. A function is known by its number plus one, since -1 is none. */
	kids() {
		if (this.made)
			return this.made;
		const {tree, leaves, at} = this, {foldFunc, foldParent} = tree.model, {places} = tree, funcs = [];
		for (const fold of at)
			if (fold && !places[foldFunc[fold] + 1]++)
				funcs.push(foldFunc[fold]);
		let count = 0;
		for (const func of funcs) {
			const first = count;
			count += places[func + 1];
			places[func + 1] = first;
		}
		const theirs = new Int32Array(count), above = new Int32Array(count);
		for (let i = 0; i < at.length; i++) {
			if (!at[i])
				continue;
			const place = places[foldFunc[at[i]] + 1]++;
			theirs[place] = leaves[i];
			above[place] = foldParent[at[i]];
		}
		let first = 0;
		this.made = funcs.map((func) => {
			const end = places[func + 1];
			const kid = new UpNode(tree, this, func, theirs.subarray(first, end), above.subarray(first, end));
			places[func + 1] = 0;
			first = end;
			return kid;
		});
		this.made.sort((a, b) => b.total - a.total);
		return this.made;
	}

	over(column) {
		let sum = 0;
		for (const leaf of this.leaves)
			sum += column[leaf];
		return sum;
	}

	sum(event) {
		return this.over(this.tree.model.folds(event).own);
	}

	samples(event) {
		return this.over(this.tree.model.folds(event).ownSamples);
	}

	own(event) {
		return this.parent && !this.parent.parent ? this.sum(event) : 0;
	}
}

function makeTree(model, event, inverted) {
	const folds = model.folds(event);
	const tree = {model, event, inverted, totals: folds.total, owns: folds.own};
	if (!inverted) {
		tree.root = new DownNode(tree, null, 0);
	} else {
		const leaves = Int32Array.from(folds.own.keys()).filter((fold) => folds.own[fold] > 0);
		tree.places = new Int32Array(model.data.functions.name.length + 1);
		tree.root = new UpNode(tree, null, -1, leaves, leaves);
	}
	return tree;
}
