/* SPDX-License-Identifier: Apache-2.0
 *
 * How PyTorch's memory was cut up at a moment: each segment (what it took from the device in one piece) with its
 * blocks, in the order of addresses, row after row like words on a page. A segment can only be given back whole: a *pin*
 * is a live block of a segment that is mostly free.
 */
const segments = (() => {
	const { make } = dom;
	const ROW = 16,
		GAP = 4,
		BETWEEN = 2;
	const FREE_SHARE = 0.5,
		FREE_BYTES = 2 ** 20; /* from which a segment counts as pinned */
	const view = { kept: [], shown: null, chosen: 0, boxes: [], width: 0, colours: null };
	let canvas, frame, told, note, choice, list;

	/* ---- reading ---- */

	function blockOf(blocks, i, offset) {
		return {
			offset,
			size: blocks.size[i],
			state: blocks.state[i],
			category: data.categories[blocks.category[i]],
			site: blocks.site[i],
			label: data.strings[blocks.label[i]],
			pin: false,
		};
	}

	function segmentOf(raw, i, address, first) {
		const { segments: rows, blocks } = raw;
		const own = [];
		let offset = 0,
			free = 0,
			largest = 0;
		for (let at = first; at < first + rows.blocks[i]; at++) {
			const block = blockOf(blocks, at, offset);
			own.push(block);
			offset += block.size;
			free += block.state === 0 ? block.size : 0;
			largest = Math.max(largest, block.state === 0 ? block.size : 0);
		}
		const live = own.filter((block) => block.state !== 0);
		const pinned = live.length > 0 && free >= FREE_BYTES && free >= rows.size[i] * FREE_SHARE;
		live.forEach((block) => {
			block.pin = pinned;
		});
		return {
			address,
			size: rows.size[i],
			kind: rows.kind[i],
			stream: rows.stream[i],
			blocks: own,
			live,
			free,
			largest,
			pinned,
		};
	}

	function read(raw) {
		const addresses = data.sums(raw.segments.address);
		let first = 0;
		const all = raw.segments.size.map((_, i) => {
			const segment = segmentOf(raw, i, addresses[i], first);
			first += raw.segments.blocks[i];
			return segment;
		});
		return { moment: data.raw.moments[raw.moment], all, left: raw.left_out };
	}

	/* ---- words ---- */

	function kindOf({ kind, stream }) {
		return [
			kind & 8 ? 'pinned memory of the host' : kind & 1 ? 'small blocks' : 'large blocks',
			kind & 2 && 'grows in place',
			kind & 4 && 'of a CUDA graph',
			stream > 0 && `stream ${stream}`,
		]
			.filter(Boolean)
			.join(', ');
	}

	const blockWords = (block) =>
		`${words.bytes(block.size)} ${block.category?.words ?? ''}${block.label ? ` ${block.label}` : ''}, ` +
		words.place(data.place(block.site));

	function heldBy(segment) {
		if (segment.live.length === 0) return 'nothing: it could be given back';
		const largest = segment.live.reduce((a, b) => (b.size > a.size ? b : a));
		const more = segment.live.length - 1;
		return blockWords(largest) + (more ? ` and ${words.many(more, 'other block', 'other blocks')}` : '');
	}

	const address = (segment) => `0x${segment.address.toString(16)}`;

	const segmentWords = (segment) =>
		`${address(segment)}: ${words.bytes(segment.size)}, ${kindOf(segment)}; ${words.bytes(segment.free)} free, ` +
		`largest free piece ${words.bytes(segment.largest)}; held by ${heldBy(segment)}`;

	const sum = (items, get) => items.reduce((total, item) => total + get(item), 0);

	/* Sentences about all segments of a moment. */
	function summary({ all, moment, left }) {
		const pinned = all.filter((segment) => segment.pinned);
		const free = (items) => words.bytes(sum(items, (segment) => segment.free));
		const size = words.bytes(sum(all, (segment) => segment.size));
		const largest = words.bytes(all.reduce((most, segment) => Math.max(most, segment.largest), 0));
		const pins = sum(pinned, (segment) => segment.live.length);
		const some = words.many(pinned.length, 'segment is', 'segments are');
		const missing = words.many(left.segments, 'full segment is', 'full segments are');
		return [
			`${words.many(all.length, 'segment', 'segments')}, ${size}; ${free(all)} of it free, ` +
				`the largest free piece ${largest}.`,
			moment.requested_bytes && `Asked for: ${words.bytes(moment.requested_bytes)} in one piece.`,
			pinned.length > 0 &&
				`${some} mostly free and cannot be given back: ${free(pinned)}, ` +
					`pinned by ${words.many(pins, 'block', 'blocks')} (outlined).`,
			left.segments > 0 && `${missing} left out here (${words.bytes(left.bytes)}).`,
		]
			.filter(Boolean)
			.join(' ');
	}

	/* ---- drawing ---- */

	/* Pieces of rows: where each stretch of bytes of a segment lies on the canvas. */
	function lay(all) {
		const bytes = all.reduce((sum, segment) => sum + segment.size, 0);
		const rows = Math.max(3, Math.min(24, Math.ceil(all.length / 8)));
		const scale = (view.width * rows * 0.96 - all.length * BETWEEN) / bytes;
		const perByte = Math.max(scale, (view.width * rows * 0.4) / bytes);
		let x = 0,
			row = 0;
		view.boxes = [];
		all.forEach((segment, number) => {
			let done = 0;
			while (done < segment.size) {
				if (view.width - x < 2) {
					x = 0;
					row++;
				}
				const take = Math.min(segment.size - done, (view.width - x) / perByte);
				view.boxes.push({ number, segment, from: done, to: done + take, x, y: row * (ROW + GAP), perByte });
				done += take;
				x += take * perByte;
				if (segment.size - done < 1) break;
			}
			x += BETWEEN;
		});
		return (row + 1) * (ROW + GAP);
	}

	function drawBlock(pen, piece, block) {
		const from = Math.max(block.offset, piece.from),
			to = Math.min(block.offset + block.size, piece.to);
		if (to <= from) return;
		const x = piece.x + (from - piece.from) * piece.perByte,
			wide = (to - from) * piece.perByte;
		pen.fillStyle =
			block.state === 0
				? view.colours.free
				: block.category
					? view.colours.of(block.category.name)
					: view.colours.hatch;
		pen.fillRect(x, piece.y, Math.max(wide - (wide > 4 ? 0.75 : 0), 0.5), ROW);
		if (block.pin) {
			pen.lineWidth = 2;
			pen.strokeStyle = view.colours.ink;
			pen.strokeRect(x + 1, piece.y + 1, Math.max(wide - 2, 2), ROW - 2);
		}
	}

	function drawPiece(pen, piece) {
		const wide = (piece.to - piece.from) * piece.perByte;
		pen.fillStyle = view.colours.free;
		pen.fillRect(piece.x, piece.y, wide, ROW);
		piece.segment.blocks.forEach((block) => {
			if (!block.pin) drawBlock(pen, piece, block);
		});
		piece.segment.blocks.forEach((block) => {
			if (block.pin) drawBlock(pen, piece, block);
		});
		pen.lineWidth = 1;
		pen.strokeStyle = view.colours.hatch;
		pen.strokeRect(piece.x + 0.5, piece.y + 0.5, Math.max(wide - 1, 1), ROW - 1);
	}

	function draw() {
		if (!view.shown) return;
		const scale = window.devicePixelRatio || 1;
		view.width = Math.max(280, frame.clientWidth - 6);
		view.colours = colours.now();
		const height = lay(view.shown.all) + 6;
		canvas.width = Math.round((view.width + 6) * scale);
		canvas.height = Math.round(height * scale);
		canvas.style.height = `${height}px`;
		const pen = canvas.getContext('2d');
		pen.scale(scale, scale);
		pen.translate(3, 3);
		view.boxes.forEach((piece) => drawPiece(pen, piece));
		pen.lineWidth = 2.5;
		pen.strokeStyle = view.colours.link;
		for (const piece of view.boxes.filter(({ number }) => number === view.chosen))
			pen.strokeRect(piece.x - 1.5, piece.y - 1.5, (piece.to - piece.from) * piece.perByte + 3, ROW + 3);
	}

	/* ---- hand and keys ---- */

	function pieceAt(event) {
		const { left, top } = canvas.getBoundingClientRect();
		const x = event.clientX - left - 3,
			y = event.clientY - top - 3;
		return view.boxes.find(
			(piece) =>
				y >= piece.y &&
				y < piece.y + ROW + GAP &&
				x >= piece.x &&
				x < piece.x + (piece.to - piece.from) * piece.perByte + BETWEEN,
		);
	}

	function blockAt(event) {
		const piece = pieceAt(event);
		if (!piece) return null;
		const at = piece.from + (event.clientX - canvas.getBoundingClientRect().left - 3 - piece.x) / piece.perByte;
		const block = piece.segment.blocks.find(({ offset, size }) => at < offset + size);
		return { piece, block };
	}

	function click(event) {
		const piece = pieceAt(event);
		if (piece) select(piece.number);
	}

	function hover(event) {
		const found = blockAt(event);
		canvas.title =
			!found || !found.block
				? ''
				: found.block.state === 0
					? `free: ${words.bytes(found.block.size)}`
					: blockWords(found.block);
	}

	function select(number) {
		const { all } = view.shown;
		if (all.length === 0) return;
		view.chosen = Math.max(0, Math.min(all.length - 1, number));
		const text = segmentWords(all[view.chosen]);
		canvas.setAttribute('aria-valuenow', String(view.chosen));
		canvas.setAttribute('aria-valuetext', `segment ${view.chosen + 1} of ${all.length}: ${text}`);
		told.textContent = `Segment ${text}`;
		draw();
	}

	function key(event) {
		const moves = {
			ArrowRight: 1,
			ArrowDown: 1,
			ArrowLeft: -1,
			ArrowUp: -1,
			PageDown: 10,
			PageUp: -10,
			Home: -Infinity,
			End: Infinity,
		};
		if (event.key in moves && !event.ctrlKey && !event.metaKey && !event.altKey) {
			event.preventDefault();
			select(view.chosen + moves[event.key]);
		}
	}

	/* ---- the section ---- */

	function buildList() {
		return table.create(
			[
				{
					words: 'Free inside',
					figure: true,
					value: (row) => row.free,
					cell: (row) => words.bytes(row.free),
				},
				{ words: 'Size', figure: true, value: (row) => row.size, cell: (row) => words.bytes(row.size) },
				{
					words: 'Largest free piece',
					figure: true,
					value: (row) => row.largest,
					cell: (row) => words.bytes(row.largest),
				},
				{
					words: 'Live blocks',
					figure: true,
					value: (row) => row.live.length,
					cell: (row) => words.count(row.live.length),
				},
				{ words: 'Pinned', value: (row) => (row.pinned ? 0 : 1), cell: (row) => (row.pinned ? 'yes' : '') },
				{ words: 'Held by', kind: 'wide', value: heldBy, cell: heldBy },
				{ words: 'Address', kind: 'code', value: (row) => row.address, cell: address },
				{ words: 'For', value: kindOf, cell: kindOf },
			],
			{ caption: 'Segments', unit: ['segment', 'segments'], search: segmentWords },
		);
	}

	function build() {
		if (data.raw.segments.length === 0) return;
		view.kept = data.raw.segments.map(read);
		canvas = make('canvas', {
			id: 'map',
			tabindex: '0',
			role: 'slider',
			'aria-label': 'Segments',
			'aria-valuemin': '0',
			on: { click, pointermove: hover, keydown: key },
		});
		frame = make('div', { class: 'chart' }, canvas);
		told = make('p', { class: 'told', id: 'map-told' });
		note = make('p', { class: 'help' });
		list = buildList();
		choice = dom.choice(
			'Moment of the map',
			view.kept.map(({ moment }, i) => [i, moment.words]),
			0,
			(i) => show(i),
		);
		const legend = make(
			'p',
			{ class: 'legend', 'aria-hidden': 'true' },
			data.stacked
				.filter(({ name }) => !data.WITHOUT_PLACE.includes(name))
				.map((item) => make('span', {}, dom.swatch(item.name), item.words)),
			make('span', {}, make('span', { class: 'swatch free' }), 'free'),
			make('span', {}, make('span', { class: 'swatch pin' }), 'pins a ' + 'segment that is mostly free'),
		);
		dom.show(
			'segments',
			make('div', { class: 'tools' }, choice.element),
			note,
			frame,
			legend,
			told,
			make('details', {}, make('summary', {}, 'The segments as a table'), list.element),
		);
		new ResizeObserver(() => {
			if (frame.clientWidth - 6 !== view.width) draw();
		}).observe(frame);
		show(0);
	}

	function show(i) {
		view.shown = view.kept[i];
		note.textContent = summary(view.shown);
		canvas.setAttribute('aria-valuemax', String(view.shown.all.length - 1));
		list.set(view.shown.all);
		const most = (segment) => (segment.pinned ? segment.free : 0);
		select(
			view.shown.all.reduce(
				(best, segment, number) => (most(segment) > most(view.shown.all[best]) ? number : best),
				0,
			),
		);
	}

	/* Follows the chosen moment where the map of it was kept. */
	function set(column) {
		const i = view.kept.findIndex(({ moment }) => moment.column === column);
		if (i >= 0 && view.shown !== view.kept[i]) {
			choice.set(i);
			show(i);
		}
	}

	return { build, set, draw };
})();
