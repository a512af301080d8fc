/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the timeline: what the device held, by category, with steps, phases, the card's limit, the peak and where it
 * ran out. A column is one real moment. What is chosen and which part is shown stand in `view`, which timeline.js sets.
 */
const chart = (() => {
	const line = data.timeline;
	const { card, moments } = data.raw;
	const EDGE = { left: 62, right: 14, strip: 16, axis: 20 };
	const HEIGHT = 330;
	const NARROW = 4; /* pixels: shades of anything narrower would flicker */
	/* from, to: the states shown; chosen, over: columns; drag: {x, to, wide} while the hand draws a range. */
	const view = { from: 0, to: 1, width: 0, chosen: 0, over: -1, drag: null, colours: null };

	const oom = moments.find((moment) => moment.name === 'out_of_memory');
	const peak = moments.find((moment) => moment.name === 'peak');

	/* ---- where things lie ---- */

	const bottom = () => HEIGHT - EDGE.axis - 2 * EDGE.strip - 6;
	const inner = () => view.width - EDGE.left - EDGE.right;
	const xOf = (state) => EDGE.left + ((state - view.from) / (view.to - view.from)) * inner();
	const stateAt = (x) => view.from + ((x - EDGE.left) / inner()) * (view.to - view.from);

	function highest() {
		let most = 0;
		for (const total of line.total) most = Math.max(most, total);
		if (oom) most = Math.max(most, line.total[oom.column] + (oom.requested_bytes ?? 0));
		/* A limit far above would press the picture flat. */
		return (card && card.total_bytes < 2.5 * most ? Math.max(most, card.total_bytes) : most) * 1.05 || 1;
	}
	const most = line ? highest() : 1;
	const top = oom || peak || (card && card.total_bytes > most) ? 40 : 14;
	const yOf = (bytes) => bottom() - (bytes / most) * (bottom() - top);

	function columnAt(x) {
		const state = Math.min(line.states - 1, Math.max(0, stateAt(x)));
		let low = 0,
			high = line.count;
		while (high - low > 1) {
			const middle = (low + high) >> 1;
			if (line.first[middle] <= state) low = middle;
			else high = middle;
		}
		/* Of columns on the same pixel the highest is the one that is drawn. */
		for (let i = low; i >= 0 && xOf(line.end(i)) >= x - 1; i--) low = line.total[i] > line.total[low] ? i : low;
		return low;
	}

	/* ---- drawing ---- */

	/* Columns as whole pixels of the device: [x, end, column, low]. Of those on one pixel the highest is kept. */
	function bars(scale) {
		const out = [];
		for (let i = 0; i < line.count; i++) {
			if (line.end(i) <= view.from || line.first[i] >= view.to) continue;
			const x = Math.round(Math.max(xOf(line.first[i]), EDGE.left) * scale);
			const end = Math.round(Math.min(xOf(line.end(i)), view.width - EDGE.right) * scale);
			const last = out.at(-1);
			if (last && last.x === x && last.end >= end - 1) {
				last.low = Math.min(last.low, line.low[i]);
				last.column = line.total[i] > line.total[last.column] ? i : last.column;
				last.end = Math.max(last.end, end);
			} else {
				out.push({ x, end: Math.max(end, x + 1), column: i, low: line.low[i] });
			}
		}
		return out;
	}

	function drawStack(pen, scale) {
		const drawn = bars(scale);
		for (const bar of drawn) {
			let below = 0;
			for (const { name } of data.stacked) {
				const bytes = line.bytes[name][bar.column];
				if (bytes <= 0) continue;
				const from = Math.round(yOf(below) * scale),
					to = Math.round(yOf((below += bytes)) * scale);
				pen.fillStyle = view.colours.of(name);
				pen.fillRect(bar.x, to, bar.end - bar.x, from - to);
			}
		}
		return drawn;
	}

	/* The fewest bytes between two moments that are shown, where they are visibly fewer. */
	function drawLow(pen, drawn, scale) {
		pen.fillStyle = view.colours.ink;
		for (const bar of drawn) {
			const y = Math.round(yOf(line.base[bar.column] + bar.low) * scale);
			const held = yOf(line.base[bar.column] + line.allocated(bar.column)) * scale;
			if (y - held > 4 * scale) pen.fillRect(bar.x, y, bar.end - bar.x, Math.round(scale));
		}
	}

	function text(pen, said, x, y, align = 'left', colour = view.colours.ink) {
		pen.fillStyle = colour;
		pen.textAlign = align;
		pen.textBaseline = 'middle';
		pen.fillText(said, x, y);
	}

	function rule(pen, x, y, toX, toY, colour, dash = []) {
		pen.strokeStyle = colour;
		pen.setLineDash(dash);
		pen.beginPath();
		pen.moveTo(x, y);
		pen.lineTo(toX, toY);
		pen.stroke();
		pen.setLineDash([]);
	}

	function tickOf(limit, wanted, base) {
		let step = base;
		for (const factor of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
			if (limit / (step = base * factor) <= wanted) break;
		return step;
	}

	function drawAxis(pen) {
		const unit = most >= 2 ** 31 ? 2 ** 30 : most >= 2 ** 21 ? 2 ** 20 : 1024;
		const step = tickOf(most, 6, most / unit < 2 ? unit / 4 : unit);
		pen.lineWidth = 1;
		for (let bytes = 0; bytes <= most; bytes += step) {
			const y = Math.round(yOf(bytes)) + 0.5;
			rule(pen, EDGE.left, y, view.width - EDGE.right, y, view.colours.rule);
			text(
				pen,
				`${bytes / unit} ${bytes ? { [2 ** 30]: 'GiB', [2 ** 20]: 'MiB', 1024: 'KiB' }[unit] : ''}`,
				EDGE.left - 8,
				y,
				'right',
				view.colours.soft,
			);
		}
	}

	function drawStates(pen) {
		const step = Math.max(
			1,
			tickOf(
				view.to - view.from,
				inner() / 90,
				10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, view.to - view.from))) - 2),
			),
		);
		const y = HEIGHT - EDGE.axis / 2;
		for (let state = Math.ceil(view.from / step) * step; state <= view.to; state += step) {
			const x = xOf(state);
			if (x < view.width - EDGE.right - 30)
				text(pen, words.count(state), x, y, x < EDGE.left + 10 ? 'left' : 'center', view.colours.soft);
		}
		text(pen, 'event', EDGE.left - 8, y, 'right', view.colours.soft);
	}

	/* Runs of columns with the same value, as [value, x, end]. */
	function runs(values) {
		const out = [];
		for (let i = 0; i < line.count; i++) {
			const last = out.at(-1);
			if (last && last.value === values[i]) last.end = xOf(line.end(i));
			else out.push({ value: values[i], x: xOf(line.first[i]), end: xOf(line.end(i)) });
		}
		return out
			.map((run) => ({
				...run,
				x: Math.max(run.x, EDGE.left),
				end: Math.min(run.end, view.width - EDGE.right),
			}))
			.filter((run) => run.end > run.x);
	}

	function drawStrip(pen, y, title, values, shade, name) {
		text(pen, title, EDGE.left - 8, y + EDGE.strip / 2, 'right', view.colours.soft);
		const drawn = runs(values).filter((run) => run.value);
		for (const run of drawn) {
			pen.fillStyle = run.end - run.x < NARROW ? view.colours.bands[0] : shade(run.value);
			pen.fillRect(run.x, y + 1, run.end - run.x, EDGE.strip - 2);
		}
		let free = 0;
		for (const run of drawn) {
			const label = name(run.value),
				wide = pen.measureText(label).width;
			const fits = title === 'step' ? run.x > free : wide + 6 < run.end - run.x;
			if (fits && run.x + wide + 4 < view.width - EDGE.right) {
				text(pen, label, run.x + 4, y + EDGE.strip / 2 + 0.5);
				free = run.x + wide + 14;
			}
		}
	}

	/* The first text that is not wider than the picture; else the last. */
	function fitting(pen, ...texts) {
		return texts.find((said) => pen.measureText(said).width + 8 < inner()) ?? texts.at(-1);
	}

	function drawLimit(pen) {
		if (!card) return;
		const bytes = words.bytes(card.total_bytes),
			long = `${card.name}: ${bytes}`;
		if (card.total_bytes > most) {
			const label = fitting(pen, `${long}, above this picture`, `${long}, above`, `card: ${bytes}, above`);
			text(pen, label, EDGE.left + 6, top - 10, 'left', view.colours.soft);
			return;
		}
		const label = fitting(pen, long, `card: ${bytes}`);
		const y = Math.round(yOf(card.total_bytes)) + 0.5;
		pen.lineWidth = 1.5;
		rule(pen, EDGE.left, y, view.width - EDGE.right, y, view.colours.bad, [6, 4]);
		const wide = pen.measureText(label).width;
		pen.fillStyle = view.colours.page;
		pen.fillRect(EDGE.left + 4, y + 3, wide + 8, 17);
		text(pen, label, EDGE.left + 8, y + 12, 'left', view.colours.bad);
	}

	/* A moment with its words above the picture, and a thin line down to it. */
	function drawFlag(pen, moment, label, row, colour) {
		const x = xOf(line.moment[moment.column] + 0.5);
		if (x < EDGE.left || x > view.width - EDGE.right + 1) return;
		const y = 9 + row * 17,
			left = x > view.width / 2;
		pen.lineWidth = 1;
		rule(pen, x, y - 6, x, yOf(line.total[moment.column]), colour);
		text(pen, label, x + (left ? -6 : 6), y, left ? 'right' : 'left', colour);
	}

	function drawOutOfMemory(pen) {
		if (!oom) return;
		const x = xOf(line.moment[oom.column] + 0.5),
			from = yOf(line.total[oom.column]);
		const asked = oom.requested_bytes;
		if (asked && x >= EDGE.left && x <= view.width - EDGE.right + 1) {
			const to = yOf(line.total[oom.column] + asked);
			pen.fillStyle = view.colours.bad;
			pen.fillRect(Math.min(x - 4, view.width - EDGE.right - 8), to, 8, Math.max(2, from - to));
		}
		drawFlag(pen, oom, `out of memory${asked ? `: ${words.bytes(asked)} more` : ''}`, 0, view.colours.bad);
	}

	function drawChosen(pen) {
		const x = Math.round(xOf(line.moment[view.chosen] + 0.5)) + 0.5;
		if (x < EDGE.left || x > view.width - EDGE.right + 1) return;
		pen.lineWidth = 3;
		rule(pen, x, top - 4, x, bottom() + 2 * EDGE.strip + 4, view.colours.page);
		pen.lineWidth = 1.5;
		rule(pen, x, top - 4, x, bottom() + 2 * EDGE.strip + 4, view.colours.ink);
		pen.fillStyle = view.colours.ink;
		pen.beginPath();
		pen.moveTo(x - 5, bottom() + 7);
		pen.lineTo(x + 5, bottom() + 7);
		pen.lineTo(x, bottom() - 1);
		pen.fill();
	}

	function drawOver(pen) {
		if (view.drag && view.drag.wide) {
			pen.fillStyle = view.colours.veil;
			pen.fillRect(
				Math.min(view.drag.x, view.drag.to),
				top,
				Math.abs(view.drag.to - view.drag.x),
				bottom() - top,
			);
		} else if (view.over >= 0) {
			const x = Math.round(xOf(line.moment[view.over] + 0.5)) + 0.5;
			pen.lineWidth = 1;
			rule(pen, x, top, x, bottom(), view.colours.soft, [2, 2]);
		}
	}

	function draw(canvas) {
		const scale = window.devicePixelRatio || 1;
		view.width = Math.max(280, canvas.parentNode.clientWidth);
		canvas.width = Math.round(view.width * scale);
		canvas.height = Math.round(HEIGHT * scale);
		view.colours = colours.now();
		const pen = canvas.getContext('2d');
		const drawn = () => {
			pen.scale(scale, scale);
			pen.font = view.colours.font;
		};
		drawn();
		drawAxis(pen);
		pen.setTransform(1, 0, 0, 1, 0, 0);
		drawLow(pen, drawStack(pen, scale), scale);
		drawn();
		const strips = bottom() + 6;
		const shades = { forward: 0, backward: 1, optimizer: 2 };
		drawStrip(
			pen,
			strips,
			'phase',
			line.phase,
			(name) => view.colours.bands[shades[name] ?? 3],
			(name) => name,
		);
		drawStrip(
			pen,
			strips + EDGE.strip,
			'step',
			line.step,
			(step) => view.colours.bands[step % 2],
			(step) => words.count(step),
		);
		drawStates(pen);
		drawLimit(pen);
		drawOutOfMemory(pen);
		if (peak) drawFlag(pen, peak, `peak: ${words.bytes(line.total[peak.column])}`, oom ? 1 : 0, view.colours.ink);
		drawOver(pen);
		drawChosen(pen);
	}

	return { view, draw, columnAt, stateAt };
})();
