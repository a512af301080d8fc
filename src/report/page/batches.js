/* SPDX-License-Identifier: Apache-2.0
 *
 * The answer of `tonnage fit` for each card, with the curve of memory against batch.
 */
const batches = (() => {
	const { make, draw } = dom;
	const { fit } = data.raw;
	const HIGH = 260,
		LEFT = 74,
		RIGHT = 16,
		ABOVE = 14,
		BELOW = 30,
		WIDEST = 760,
		APART = 56; /* of two numbers below the curve */

	const text = (x, y, anchor, words) => draw('text', { x, y, 'text-anchor': anchor }, words);

	/* Seen apart without colours, too: a batch that fits is a dot, another one a cross. */
	function point({ batch, fits, outcome, peak_device_bytes: bytes }, x, y) {
		const told = draw('title', {}, `batch ${words.count(batch)}: ${words.bytes(bytes)}, ${outcome}`);
		if (fits) return draw('circle', { class: 'good', cx: x, cy: y, r: 4.5 }, told);
		return draw('path', { class: 'bad', d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8` }, told);
	}

	function curve(card, wide) {
		const seen = card.curve.filter((item) => item.peak_device_bytes !== null);
		const mostBatch = Math.max(1, ...seen.map(({ batch }) => batch));
		const mostBytes = Math.max(card.total_bytes, ...seen.map((item) => item.peak_device_bytes));
		const across = (batch) => LEFT + ((wide - LEFT - RIGHT) * batch) / mostBatch;
		const up = (bytes) => HIGH - BELOW - ((HIGH - BELOW - ABOVE) * bytes) / mostBytes;
		const line = (name, y) => draw('line', { class: name, x1: LEFT, x2: wide, y1: y, y2: y });
		const limit = up(card.total_bytes),
			largest = card.largest_batch ?? 0;
		const clear = (batch) => largest === 0 || Math.abs(across(batch) - across(largest)) > APART;
		const places = seen.map((item) => [across(item.batch), up(item.peak_device_bytes)]);
		return draw(
			'svg',
			{
				class: 'curve',
				role: 'img',
				'aria-label': `Peak memory by batch on ${card.name}; the table below has the figures`,
				viewBox: `0 0 ${wide} ${HIGH}`,
			},
			line('axis', up(0)),
			line('limit', limit),
			text(LEFT - 6, limit + 4, 'end', words.bytes(card.total_bytes)),
			text(LEFT - 6, up(0) + 4, 'end', '0'),
			limit - up(mostBytes) > 16 && text(LEFT - 6, up(mostBytes) + 4, 'end', words.bytes(mostBytes)),
			clear(0) && text(across(0), HIGH - 8, 'start', 'batch 0'),
			largest > 0 && text(across(largest), HIGH - 8, 'middle', words.count(largest)),
			clear(mostBatch) && text(across(mostBatch), HIGH - 8, 'end', words.count(mostBatch)),
			draw('polyline', { class: 'way', points: places.map((place) => place.join()).join(' ') }),
			seen.map((item, i) => point(item, ...places[i])),
		);
	}

	/* Drawn for its width, so that its words keep their size. */
	function picture(card) {
		const box = make('div', { class: 'curved' });
		let drawn = 0;
		new ResizeObserver(() => {
			const wide = Math.min(WIDEST, box.clientWidth);
			if (wide === drawn || wide <= 0) return;
			drawn = wide;
			dom.fill(box, curve(card, wide));
		}).observe(box);
		return box;
	}

	const outcome = (item) =>
		item.outcome + (item.why_not ? `: ${item.why_not}` : '') + (item.tried ? '' : ' (estimated from a larger card)');

	const points = (card) =>
		make(
			'details',
			{},
			make('summary', {}, 'Every batch that was tried'),
			table.plain(
				`Batches on ${card.name}`,
				['Batch', 'Peak of the card', 'Outcome'],
				[1],
				card.curve.map((item) => [words.count(item.batch), words.bytes(item.peak_device_bytes), outcome(item)]),
			),
		);

	const answer = (card) => [
		card.title &&
			make(
				'h3',
				{},
				make('span', { class: `sign ${card.verdict}`, 'aria-hidden': 'true' }, sections.SIGNS[card.verdict]),
				card.title,
			),
		card.lines.map((line) => make('p', {}, line)),
		card.curve.length > 0 && [picture(card), points(card)],
	];

	function show() {
		if (fit && fit.cards.some((card) => card.title || card.curve.length > 0)) dom.show('batches', fit.cards.map(answer));
	}

	return { show };
})();
