/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the page that stay as they are: headline, findings, comparison, regions, about.
 */
const sections = (() => {
	const { make } = dom;
	const { raw } = data;
	const placeOf = (at) =>
		make('span', { class: 'code', title: at ? words.place(at, true) : null }, words.place(at));

	const SIGNS = { fits: '✓', out_of_memory: '✕', grows: '↗', failed: '!', over_budget: '✕', over_baseline: '↗', over_host_memory: '✕', spills: '✕', undecided: '?' };

	function headline() {
		const { verdict, title, lines, at, why, do: advice } = raw.headline;
		const chain = at.map((place, i) => [
			i > 0 && make('span', { class: 'arrow', 'aria-label': 'which calls' }, ' → '),
			placeOf(place),
		]);
		const told = make(
			'div',
			{ class: 'told-all' },
			make(
				'h1',
				{ id: 'verdict' },
				verdict && make('span', { class: `sign ${verdict}`, 'aria-hidden': 'true' }, SIGNS[verdict]),
				title || raw.title,
			),
			chain.length > 0 && make('p', { class: 'chain' }, chain),
			lines.map((line) => make('p', {}, line)),
			why && make('p', {}, make('strong', {}, 'Why '), why),
			advice.length > 0 &&
				make(
					'div',
					{ class: 'do' },
					make('strong', {}, 'What to do'),
					make(
						'ol',
						{},
						advice.map((line) => make('li', {}, line)),
					),
				),
			raw.inferred &&
				make(
					'p',
					{ class: 'note' },
					'What each byte was for is guessed here, from stacks and lifetimes: the ' +
						'recording does not say it.',
				),
			raw.notes.map((note) => make('p', { class: 'note' }, note)),
		);
		dom.show('headline', told, first());
		if (verdict) dom.find('headline').classList.add(verdict);
	}

	/* What was held at the moment that matters, largest first. */
	function first() {
		if (!data.timeline || raw.moments.length === 0) return null;
		const { column, words: called } = raw.moments[0];
		const total = data.timeline.total[column],
			room = Math.max(raw.card?.total_bytes ?? 0, total);
		const held = data.stacked
			.map(({ name, words: text }) => ({ name, text, bytes: data.timeline.bytes[name][column] }))
			.filter(({ bytes }) => bytes > 0);
		const bar = make(
			'div',
			{ class: 'card', role: 'img', 'aria-label': `${words.bytes(total)} held of ${words.bytes(room)}` },
			held.map(({ name, bytes }) => dom.bar(bytes / room, name)),
		);
		const rows = held
			.sort((a, b) => b.bytes - a.bytes)
			.map(({ name, text, bytes }) =>
				make(
					'tr',
					{},
					make('th', { scope: 'row' }, dom.swatch(name), text),
					make('td', { class: 'figure' }, words.bytes(bytes)),
					make('td', { class: 'figure' }, words.percent(bytes / room)),
				),
			);
		return make(
			'div',
			{ class: 'held' },
			make(
				'p',
				{},
				make('strong', {}, called),
				`: ${words.bytes(total)}`,
				raw.card ? ` of ${words.bytes(raw.card.total_bytes)}` : '',
			),
			bar,
			make(
				'table',
				{ class: 'readout' },
				make('caption', { class: 'unseen' }, 'What was held, by category'),
				make('tbody', {}, rows),
			),
		);
	}

	function findings(choose) {
		if (raw.findings.length === 0) return;
		dom.show(
			'findings',
			make(
				'ul',
				{ class: 'findings' },
				raw.findings.map((item) =>
					make(
						'li',
						{ class: item.severity },
						make('span', { class: 'severity' }, item.severity),
						make(
							'div',
							{},
							make(
								'p',
								{},
								make('strong', {}, item.what),
								item.bytes !== null && make('span', { class: 'bytes' }, words.bytes(item.bytes)),
							),
							make(
								'p',
								{ class: 'where' },
								item.at && placeOf(item.at),
								item.at &&
									item.at.file &&
									make('span', { class: 'path' }, `${item.at.file}${words.joint(item.at.file)}${item.at.line}`),
							),
							item.do && make('p', {}, make('strong', {}, 'Do '), item.do),
							make(
								'p',
								{ class: 'soft' },
								item.id,
								item.sure && `, ${item.sure}`,
								' ',
								item.column !== null &&
									data.timeline &&
									make(
										'button',
										{ type: 'button', on: { click: () => choose(item.column) } },
										'Show the moment',
									),
							),
						),
					),
				),
			),
		);
	}

	function changeCells(before, after, widest) {
		const kind = after < before ? 'less' : after > before ? 'more' : 'same';
		return [
			make('td', { class: 'figure' }, words.bytes(before)),
			make('td', { class: 'figure' }, words.bytes(after)),
			make('td', { class: `figure ${kind}` }, words.change(after - before)),
			make('td', { class: 'share' }, dom.bar(Math.abs(after - before) / widest, kind)),
		];
	}

	function byCategory({ before, after, bytes }) {
		const rows = data.categories
			.map(({ name, words: text, index }) => ({
				name,
				text,
				before: bytes.before[index],
				after: bytes.after[index],
			}))
			.filter((row) => row.before || row.after);
		const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
		const widest = Math.max(1, ...rows.map((row) => Math.abs(row.after - row.before)));
		const line = (title, row) =>
			make('tr', {}, make('th', { scope: 'row' }, title), changeCells(row.before, row.after, widest));
		return make(
			'div',
			{ class: 'scroll' },
			make(
				'table',
				{ class: 'changes' },
				make('caption', { class: 'unseen' }, 'Changes by category'),
				make(
					'thead',
					{},
					make(
						'tr',
						{},
						['', before, after, 'change', ''].map((name, i) =>
							make('th', { scope: 'col', class: i > 0 ? 'figure' : '' }, name),
						),
					),
				),
				make(
					'tbody',
					{},
					rows.map((row) => line([dom.swatch(row.name), row.text], row)),
				),
				make('tfoot', {}, line('together', { before: sum('before'), after: sum('after') })),
			),
		);
	}

	function byLine({ before, after, lines }) {
		const rows = lines.category.map((of, i) => ({
			category: data.categories[of],
			at: data.placed(lines.at[i], lines.backward[i]),
			user: data.placed(lines.user[i], 0),
			before: lines.before[i],
			after: lines.after[i],
			blocks: [lines.before_blocks[i], lines.after_blocks[i]],
			change: lines.after[i] - lines.before[i],
		}));
		const list = table.create(
			[
				{
					words: 'Change',
					figure: true,
					value: (row) => Math.abs(row.change),
					cell: (row) => words.change(row.change),
				},
				{ words: before, figure: true, value: (row) => row.before, cell: (row) => words.bytes(row.before) },
				{ words: after, figure: true, value: (row) => row.after, cell: (row) => words.bytes(row.after) },
				{
					words: 'Blocks',
					figure: true,
					value: (row) => row.blocks[1],
					cell: (row) => `${words.count(row.blocks[0])} → ${words.count(row.blocks[1])}`,
				},
				{
					words: 'What',
					kind: 'tag',
					value: (row) => row.category.words,
					cell: (row) => [dom.swatch(row.category.name), row.category.words],
				},
				{
					words: 'Line',
					kind: 'wide',
					value: (row) => words.place(row.at),
					cell: (row) => [placeOf(row.at), row.user && [' ← ', placeOf(row.user)]],
				},
			],
			{
				caption: 'Changes by line',
				unit: ['line', 'lines'],
				search: (row) =>
					`${row.category.words} ${words.place(row.at, true)} ` +
					(row.user ? words.place(row.user, true) : ''),
			},
		);
		list.set(rows);
		return list.element;
	}

	function comparison() {
		if (!raw.comparison) return;
		dom.show(
			'comparison',
			make('p', { class: 'help' }, `From ${raw.comparison.before} to ${raw.comparison.after}.`),
			byCategory(raw.comparison),
			make('h3', {}, 'By line'),
			byLine(raw.comparison),
		);
	}

	const taken = ({ peak_taken_bytes: bytes }) => (bytes === 0 ? 'nothing new' : words.bytes(bytes));

	function regions() {
		if (raw.regions.length === 0) return;
		const cells = raw.regions.some((region) => region.left_bytes !== null);
		const widest = Math.max(1, ...raw.regions.map((region) => region.peak_taken_bytes ?? 0));
		dom.show(
			'regions',
			make(
				'p',
				{ class: 'help' },
				'What was on the device at most while a part took memory itself, and at most in all. ',
				'What PyTorch keeps from one part counts in all later ones, too.',
			),
			make(
				'div',
				{ class: 'scroll' },
				make(
					'table',
					{ class: 'regions' },
					make(
						'thead',
						{},
						make(
							'tr',
							{},
							['Part', 'Took memory', '', 'In all', ...(cells ? ['Left behind'] : []), 'Reached at'].map((name, i) =>
								make('th', { scope: 'col', class: i === 1 || i === 3 || (cells && i === 4) ? 'figure' : '' }, name),
							),
						),
					),
					make(
						'tbody',
						{},
						raw.regions.map((region) =>
							make(
								'tr',
								{},
								make('th', { scope: 'row' }, region.name),
								make('td', { class: region.peak_taken_bytes === 0 ? 'figure soft' : 'figure' }, taken(region)),
								make('td', { class: 'share' }, dom.bar((region.peak_taken_bytes ?? 0) / widest, 'parameters')),
								make('td', { class: 'figure' }, words.bytes(region.peak_device_bytes)),
								cells ? make('td', { class: 'figure' }, region.left_bytes !== null ? words.bytes(region.left_bytes) : '') : '',
								make('td', {}, region.at ? placeOf(region.at) : ''),
							),
						),
					),
				),
			),
		);
	}

	function assumptions() {
		if (raw.assumptions.length === 0) return;
		const hang = (bytes) => (bytes === null ? 'unknown' : bytes > 0 ? words.bytes(bytes) : 'none');
		dom.show(
			'assumptions',
			make(
				'p',
				{ class: 'help' },
				'Kernels do not run on a virtual GPU. What the program read of their results was taken to be this; ' +
					'--assume says otherwise.',
			),
			table.plain(
				'What was assumed, by line',
				['Line', 'What', 'Taken as', 'Bytes of the peak that hang on it'],
				[3],
				raw.assumptions.map((row) => [placeOf(row.at), row.what, row.value, hang(row.bytes_hanging)]),
			),
		);
	}

	const HELD = {
		call: 'calls of a library that would have sent something',
		connection: 'connections',
		data: 'data on a connection that stood, or datagrams',
	};

	function network() {
		const { network: wall } = raw;
		if (!wall || (wall.mode === 'closed' && wall.held_back.length === 0 && wall.raw_calls)) return;
		const open = wall.mode === 'allow';
		dom.show(
			'network',
			make(
				'p',
				{ class: 'help' },
				open
					? 'Nothing was held back: --network allow.'
					: 'Values of this run are made up, and this was held back. --network allow lets the program send.',
			),
			!open &&
				!wall.raw_calls &&
				make('p', { class: 'note' }, 'Programs that bypass the C library were not held back here.'),
			wall.download_refused &&
				make('p', { class: 'note' }, `A download from ${wall.download_refused} was refused.`),
			wall.held_back.length > 0 &&
				table.plain(
					'What was held back',
					['Whose, or where to', 'What', 'How often'],
					[2],
					wall.held_back.map((row) => [row.name, HELD[row.what], words.count(row.count)]),
				),
		);
	}

	function about() {
		const others = raw.devices.filter((device) => device !== raw.device);
		dom.fill(dom.find('subject'), raw.title);
		if (raw.devices.length > 1)
			dom.fill(dom.find('devices'), `device ${raw.device}; --device shows ${others.join(', ')}`);
		dom.fill(
			dom.find('about'),
			make(
				'dl',
				{},
				raw.about.map(([name, text]) => [make('dt', {}, name), make('dd', {}, text)]),
				make('dt', {}, 'made by'),
				make('dd', {}, `Tonnage ${raw.tool}. This file is whole: it asks nothing of any other place.`),
			),
		);
		document.title = `${raw.headline.title || raw.title} · Tonnage`;
	}

	return { SIGNS, headline, findings, comparison, regions, assumptions, network, about };
})();
