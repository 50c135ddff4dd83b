/*
 * What colours mean. Each mode gives a frame a colour and says so in the legend; what the colour
 * tells stands in words or figures beside it too. Kinds of code also differ by their pattern.
 */

const HUES = {Python: 211, native: 34, kernel: 282, own: 158, packages: 48, "Python and its library": 211,
	"system libraries": 34, unknown: 0};

function isDark() {
	const theme = document.documentElement.dataset.theme;
	return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/* Neighbours of one hue are told apart by a little lightness, the same for a name in each view. */
function shade(hue, seed) {
	let mix = Math.imul(seed + 1, 0x9e3779b1) >>> 24;
	mix = (mix / 255 - 0.5) * (isDark() ? 9 : 10);
	return isDark() ? `hsl(${hue} 42% ${35 + mix}%)` : `hsl(${hue} 74% ${80 + mix}%)`;
}

/* From nothing to much, over one ramp of lightness that greys keep. */
function ramp(part) {
	const at = Math.max(0, Math.min(1, part));
	return isDark() ? `hsl(${52 - 44 * at} ${15 + 60 * at}% ${24 + 24 * at}%)` :
		`hsl(${52 - 44 * at} ${50 + 40 * at}% ${94 - 32 * at}%)`;
}

/* Whose code a function is; the data has numbers. */
const ORIGINS = ["own", "packages", "Python and its library", "system libraries", "kernel", "unknown"];

function hash(text) {
	let sum = 7;
	for (let i = 0; i < text.length; i++)
		sum = Math.imul(sum, 31) + text.charCodeAt(i) | 0;
	return sum >>> 0;
}

/* The value of a metric out of the sums of its events; null where chance may have made much of it: where
 * the 95% interval of its logarithm is wider than a factor of two, or the samples are too few to tell. */
const SAMPLES_FEWEST = 8;

function metricValue(metric, sum, samples) {
	let above = 0, below = 0, hits = 0, base = 0;
	for (const [a, b, scaleAbove, scaleBelow] of metric.pairs) {
		above += scaleAbove * sum(a);
		below += scaleBelow * sum(b);
		hits += samples(a);
		base += samples(b);
	}
	if (!below || base < SAMPLES_FEWEST)
		return null;
	if (!metric.joint && hits && 1.96 * Math.sqrt(1 / hits + 1 / base) > Math.LN2)
		return null;
	return metric.scale * above / below;
}

function metricText(metric, value) {
	return value === null ? "" : value.toFixed(metric.decimals) + metric.unit;
}

/* Modes: {key, title, colour(node), text(node), legend()}. */
function colourModes(app) {
	const {model} = app, {data} = model;
	const origins = data.functions.origin.map((origin) => ORIGINS[origin]);
	const hues = data.files.map(([path]) => hash(path) % 360);
	const functionHash = data.functions.name.map((name) => hash(name));
	const entry = (hue, text, kind) => ({colour: shade(hue, 0), text, kind});
	const modes = [{
		key: "kind", title: "kind of code",
		colour: (node) => shade(HUES[KINDS[data.functions.kind[node.func]]], functionHash[node.func]),
		legend: () => KINDS.map((name, kind) => entry(HUES[name], name, kind)),
	}, {
		key: "origin", title: "whose code",
		colour: (node) => shade(HUES[origins[node.func]], functionHash[node.func]),
		legend: () => ORIGINS.filter((name) => origins.includes(name)).map((name) =>
			entry(HUES[name], name, name === "system libraries" ? NATIVE : name === "kernel" ? KERNEL : PYTHON)),
	}, {
		key: "file", title: "file",
		colour: (node) => shade(hues[data.functions.file[node.func]], 0),
		legend: () => [{text: "each file its own colour"}],
	}, {
		key: "self", title: "own share",
		colour: (node) => ramp(Math.sqrt(node.own(app.event) / (model.sums(app.event).whole || 1))),
		text: (node) => percent(node.own(app.event) / (model.sums(app.event).whole || 1)),
		legend: () => [0, 0.1, 0.3, 1].map((part) => ({colour: ramp(Math.sqrt(part)), text: 100 * part + "%"})),
	}];
	for (const metric of data.metrics)
		modes.push(metricMode(app, metric));
	return modes;
}

/* A metric's ramp spans what the functions have, but for the outermost twentieths. */
function metricMode(app, metric) {
	const {model} = app;
	const range = () => model.kept("range" + metric.key, () => {
		const values = [];
		for (let func = 0; func < model.data.functions.name.length; func++) {
			const value = metricValue(metric, (event) => model.figures(event).functions.total[func],
				(event) => model.figures(event).functions.totalSamples[func]);
			if (value !== null)
				values.push(value);
		}
		values.sort((a, b) => a - b);
		if (!values.length)
			return null;
		const low = values[Math.floor(values.length * 0.05)], high = values[Math.ceil(values.length * 0.95) - 1];
		return {low: Math.min(low, high), high: Math.max(low, high)};
	});
	const value = (node) => metricValue(metric, (event) => node.sum(event), (event) => node.samples(event));
	return {
		key: metric.key, title: metric.summary, metric,
		colour: (node) => {
			const known = value(node), span = range();
			if (known === null || !span)
				return isDark() ? "#30353c" : "#eceef1";
			return ramp((known - span.low) / (span.high - span.low || 1));
		},
		text: (node) => metricText(metric, value(node)),
		legend: () => {
			const span = range();
			return span ? [0, 0.5, 1].map((part) => ({
				colour: ramp(part), text: metricText(metric, span.low + part * (span.high - span.low)),
			})) : [{text: "too few samples to tell"}];
		},
	};
}

/* Patterns over a frame: native code is hatched, the kernel dotted. */
function makePatterns() {
	const patterns = [];
	for (const kind of [NATIVE, KERNEL]) {
		const canvas = make("canvas", {width: 6, height: 6}), context = canvas.getContext("2d");
		context.strokeStyle = context.fillStyle = isDark() ? "rgb(255 255 255 / 13%)" : "rgb(0 0 0 / 10%)";
		if (kind === NATIVE) {
			context.beginPath();
			for (const x of [-6, 0, 6]) {
				context.moveTo(x, 6);
				context.lineTo(x + 6, 0);
			}
			context.stroke();
		} else {
			context.fillRect(1, 1, 1.6, 1.6);
			context.fillRect(4, 4, 1.6, 1.6);
		}
		patterns[kind] = context.createPattern(canvas, "repeat");
	}
	return patterns;
}
