/* The data of the page: README.md says what is in it. */

async function readData() {
	const text = atob(document.getElementById("data").textContent);
	const bytes = new Uint8Array(text.length);
	for (let i = 0; i < bytes.length; i++)
		bytes[i] = text.charCodeAt(i);
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return JSON.parse(await new Response(stream).text());
}

const PYTHON = 0, NATIVE = 1, KERNEL = 2;
const KINDS = ["Python", "native", "kernel"];
