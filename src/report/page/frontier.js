/* SPDX-License-Identifier: Apache-2.0
 *
 * The answer of `tonnage fit --vary`: for each card a table of what fits, a row a combination of the other values.
 */
const frontier = (() => {
	const { make } = dom;
	const found = data.raw.frontier;
	/* Seen apart without colours, too. */
	const SIGNS = { fits: '●', out_of_memory: '×', failed: '!', unknown: '?' };
	const OUTCOMES = {
		fits: 'fits',
		out_of_memory: 'does not fit',
		failed: 'the program fails',
		unknown: 'not known',
	};

	function told(cell) {
		const bytes = cell.peak_device_bytes === null ? '' : `: ${words.bytes(cell.peak_device_bytes)}`;
		const how = cell.tried ? '' : ' (follows from others)';
		return OUTCOMES[cell.outcome] + bytes + (cell.why_not ? `: ${cell.why_not}` : '') + how;
	}

	const cell = (item) =>
		make(
			'td',
			{ class: `cell ${item.outcome}${item.tried ? ' tried' : ''}`, title: told(item) },
			make('span', { 'aria-hidden': 'true' }, SIGNS[item.outcome]),
			make('span', { class: 'unseen' }, told(item)),
		);

	const row = (item, planned) =>
		make(
			'tr',
			{},
			make('th', { scope: 'row' }, item.name || found.axis),
			item.cells.map(cell),
			make('td', { class: 'figure' }, item.largest),
			make('td', { class: 'figure' }, item.peak_device_bytes === null ? '' : words.bytes(item.peak_device_bytes)),
			make('td', { class: 'figure' }, item.margin_bytes === null ? '' : words.bytes(item.margin_bytes)),
			planned && make('td', {}, item.plan ?? ''),
		);

	function card(item) {
		const planned = found.batch !== null;
		const head = (text, name) => make('th', { scope: 'col', class: name }, text);
		return [
			make('h3', {}, `${item.name} (${words.bytes(item.total_bytes)})`),
			make(
				'div',
				{ class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `What fits on ${item.name}` },
				make(
					'table',
					{ class: 'frontier' },
					make('caption', { class: 'unseen' }, `What fits on ${item.name}`),
					make(
						'thead',
						{},
						make(
							'tr',
							{},
							head(found.axis, ''),
							found.columns.map((value) => head(words.count(value), 'cell')),
							head('Largest', 'figure'),
							head('Peak of the card', 'figure'),
							head('To spare', 'figure'),
							planned && head(`For batch ${words.count(found.batch)}`, ''),
						),
					),
					make('tbody', {}, item.rows.map((one) => row(one, planned))),
				),
			),
		];
	}

	function show() {
		if (!found) return;
		const key = make('p', { class: 'key' }, '● fits, × does not fit, ! the program fails; in grey: follows from others');
		dom.show('frontier', [found.cards.map(card), key]);
	}

	return { show };
})();
