/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of what was alive at a moment: by line, or each large block by itself.
 */
const holders = (() => {
	const { make } = dom;
	const { intervals, timeline: line } = data;
	let byLine,
		byBlock,
		shown = null,
		alive = null,
		box;

	const code = (at) => make('span', { class: 'code', title: at ? words.place(at, true) : null }, words.place(at));

	function where(site) {
		if (site === null) return make('span', { class: 'soft' }, 'no line of a program');
		if (site < 0) return make('span', { class: 'soft' }, 'many lines with little each');
		const user = data.user(site);
		return [code(data.place(site)), user && [make('span', { class: 'soft' }, ' called by '), code(user)]];
	}

	const opens = ({ site }) => site !== null && data.stack(site).length > 0;

	function stackOf(site) {
		const frames = data.stack(site).map(data.frame).reverse();
		return make(
			'ol',
			{ class: 'stack' },
			frames.map((frame) =>
				make(
					'li',
					{ class: frame.kind < 2 ? '' : 'soft' },
					make('b', {}, frame.function),
					` ${frame.file}${words.joint(frame.file)}${frame.line}`,
				),
			),
		);
	}

	/* Rows of one line and category together; what they were called by stays in `parts`, the largest first. */
	function joined(rows) {
		const lines = new Map();
		for (const row of rows) {
			const at = row.site < 0 ? '' : words.place(data.place(row.site), true);
			const user = row.site < 0 ? null : data.user(row.site);
			const key = `${row.category.name}\n${at}\n${user ? words.place(user, true) : ''}`;
			const line = lines.get(key);
			if (line === undefined) {
				lines.set(key, { ...row, labels: new Set(row.labels), parts: [row] });
				continue;
			}
			line.bytes += row.bytes;
			line.blocks += row.blocks;
			row.labels.forEach((label) => line.labels.add(label));
			line.parts.push(row);
		}
		for (const line of lines.values()) line.parts.sort((one, other) => other.bytes - one.bytes);
		return [...lines.values()].map((line) => ({ ...line, labels: [...line.labels] }));
	}

	function stacksOf({ parts }) {
		if (parts.length === 1) return stackOf(parts[0].site);
		return parts.map((part) => [
			make('p', { class: 'soft' }, `${words.bytes(part.bytes)}, ${words.many(part.blocks, 'block', 'blocks')}`),
			stackOf(part.site),
		]);
	}

	const searched = (row) =>
		[
			row.category.words,
			...row.labels,
			row.site === null
				? ''
				: [data.place(row.site), data.user(row.site)].filter(Boolean).map((at) => words.place(at, true)),
		]
			.flat()
			.join(' ');
	const sum = (rows) => words.bytes(rows.reduce((bytes, row) => bytes + row.bytes, 0));
	const category = {
		words: 'For',
		kind: 'tag',
		value: (row) => row.category.words,
		cell: (row) => [dom.swatch(row.category.name), row.category.words],
	};
	const bytes = { words: 'Bytes', figure: true, value: (row) => row.bytes, cell: (row) => words.bytes(row.bytes) };
	const what = {
		words: 'What',
		kind: 'what',
		value: (row) => row.labels.join(' '),
		cell: (row) => row.labels.slice(0, 3).join(', ') + (row.labels.length > 3 ? ' …' : ''),
	};
	const place = {
		words: 'Line',
		kind: 'wide',
		value: (row) => (row.site === null ? '' : words.place(data.place(row.site))),
		cell: (row) => where(row.site),
	};

	function build() {
		byLine = table.create(
			[
				bytes,
				{
					words: 'Share',
					figure: true,
					value: (row) => row.bytes,
					cell: (row) => words.percent(row.bytes / line.total[alive.column]),
				},
				{
					words: 'Blocks',
					figure: true,
					value: (row) => row.blocks ?? 0,
					cell: (row) => (row.blocks === null ? '' : words.count(row.blocks)),
				},
				category,
				place,
				what,
			],
			{
				caption: 'What was alive, by line',
				unit: ['row', 'rows'],
				search: searched,
				sum,
				opener: 4,
				opens,
				open: stacksOf,
			},
		);
		byBlock = table.create(
			[
				bytes,
				category,
				place,
				what,
				{ words: 'From event', figure: true, value: (row) => row.from, cell: (row) => words.count(row.from) },
				{
					words: 'Until',
					figure: true,
					value: (row) => row.until,
					cell: (row) => (row.until === Infinity ? 'the end' : words.count(row.until)),
				},
			],
			{
				caption: 'Large blocks that were alive',
				unit: ['block', 'blocks'],
				search: searched,
				sum,
				opener: 2,
				opens,
				open: (row) => stackOf(row.site),
			},
		);
		const choice = dom.choice(
			'Rows of the table',
			[
				['line', 'By line'],
				['block', `Each block${intervals.smallest > 0 ? ` from ${words.bytes(intervals.smallest)} on` : ''}`],
			],
			'line',
			show,
		);
		box = make('div', { class: 'of-line' }, byLine.element, byBlock.element);
		dom.show('holders', make('div', { class: 'tools' }, choice.element), box);
		show('line');
	}

	function show(name) {
		shown = name;
		byLine.element.hidden = name !== 'line';
		byBlock.element.hidden = name !== 'block';
		if (alive) set(alive);
	}

	function set(found) {
		alive = found;
		if (shown === 'line')
			byLine.set([
				...joined(found.lines),
				...found.rest.map(({ category: of, bytes: held }) => ({
					category: of,
					site: null,
					bytes: held,
					blocks: null,
					labels: [],
				})),
			]);
		else
			byBlock.set(
				found.blocks.map((i) => ({
					category: data.categories[intervals.of[i]],
					site: intervals.site[i],
					bytes: intervals.bytes[i],
					from: intervals.from[i],
					until: intervals.until[i],
					labels: intervals.label[i] ? [data.strings[intervals.label[i]]] : [],
				})),
			);
	}

	return { build, set };
})();
