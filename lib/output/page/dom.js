/* Elements and words. Text from the profile becomes a text node, and nothing else. */

const $ = (id) => document.getElementById(id);

/* make("td", {class: "number", onclick: f}, child, "text", ...) */
function make(tag, attributes = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith("on"))
			element.addEventListener(name.slice(2), value);
		else if (value === true)
			element.setAttribute(name, "");
		else if (value !== false && value !== null && value !== undefined)
			element.setAttribute(name, value);
	}
	element.append(...children.filter((child) => child !== null && child !== undefined));
	return element;
}

function percent(share) {
	return share >= 0.0005 ? (100 * share).toFixed(1) + "%" : "";
}

function count(number) {
	return Math.round(number).toLocaleString("en-US");
}

function duration(ns) {
	const seconds = ns / 1e9;
	if (seconds >= 120)
		return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
	if (seconds >= 10)
		return seconds.toFixed(1) + " s";
	if (seconds >= 1)
		return seconds.toFixed(2) + " s";
	return (seconds * 1e3).toFixed(seconds >= 0.01 ? 0 : 1) + " ms";
}

/* The words of one thing: where "1 sample" and "2 samples" differ. */
function counted(number, word) {
	return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

/* A canvas as large as its element, in the screen's own pixels; its context draws in CSS pixels. */
function fitCanvas(canvas, width, height) {
	const scale = window.devicePixelRatio || 1;
	canvas.style.width = width + "px";
	canvas.style.height = height + "px";
	if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
		canvas.width = Math.round(width * scale);
		canvas.height = Math.round(height * scale);
	}
	const context = canvas.getContext("2d");
	context.setTransform(scale, 0, 0, scale, 0, 0);
	context.clearRect(0, 0, width, height);
	return context;
}

/* Text cut to a width, for a font of one width per character. */
function cutText(text, width, letter) {
	const fits = Math.floor(width / letter);
	if (text.length <= fits)
		return text;
	return fits > 2 ? text.slice(0, fits - 1) + "…" : "";
}
