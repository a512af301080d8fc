/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of `tonnage fix`: what fits, what more cards would hold, and what was tried in vain.
 */
const changes = (() => {
	const { make } = dom;
	const { fix } = data.raw;
	const widest = Math.max(1, ...(fix?.changes ?? []).map((change) => change.saved_bytes ?? 0));

	const saved = (bytes) => (bytes === 0 ? 'nothing at the peak' : words.bytes(bytes));

	/* Lines of text, in which `...` is code. */
	const lines = (text) =>
		text
			.split('\n')
			.filter(Boolean)
			.map((line) =>
				make('p', {}, line.split('`').map((part, i) => (i % 2 ? make('code', { class: 'code' }, part) : part))),
			);

	const fact = (name, ...value) => make('div', {}, make('dt', {}, name), make('dd', {}, value));

	const found = (change) =>
		make(
			'li',
			{},
			make(
				'h3',
				{},
				change.title,
				change.enough && make('span', { class: 'mark' }, 'the first that is enough and keeps the results'),
			),
			make(
				'dl',
				{ class: 'facts' },
				change.saved_bytes !== null &&
					fact(
						'Saves',
						saved(change.saved_bytes),
						make('span', { class: 'share' }, dom.bar(change.saved_bytes / widest, 'parameters')),
					),
				fact('Leaves', words.bytes(change.margin_bytes)),
				fact('A step takes', change.time),
				fact('Effect', change.results),
			),
			change.narrow && make('p', { class: 'soft' }, change.narrow),
			change.how && lines(change.how),
			change.patch &&
				make(
					'details',
					{},
					make('summary', {}, 'The patch'),
					make('pre', { class: 'code', tabindex: '0' }, change.patch),
				),
		);

	function inVain(all) {
		if (all.length === 0) return;
		dom.show(
			'in-vain',
			table.plain(
				'Changes that were tried in vain',
				['Change', 'Outcome', 'Saves', 'Why'],
				[2],
				all.map((change) => [
					make('span', { class: 'code whole' }, change.id),
					change.outcome,
					change.saved_bytes === null ? '' : saved(change.saved_bytes),
					change.why_not,
				]),
			),
		);
	}

	function moreCards() {
		if (fix.multi_gpu.length === 0) return;
		dom.show(
			'more-cards',
			make(
				'p',
				{ class: 'help' },
				'An estimate by arithmetic on the peak, not tried. Each card has its share of the batch; ' +
					'NCCL’s buffers come on top.',
			),
			make(
				'ul',
				{},
				fix.multi_gpu.map((more) =>
					make('li', {}, `${more.cards} with ${more.with}: about ${words.bytes(more.estimated_device_bytes)} each`),
				),
			),
		);
	}

	function show() {
		if (!fix || fix.fits_unchanged) return;
		const fitting = fix.changes.filter((change) => change.fits);
		dom.show(
			'changes',
			fitting.length > 0
				? make('ol', { class: 'changes-found' }, fitting.map(found))
				: make('p', {}, 'No change that was tried makes it fit.'),
		);
		moreCards();
		inVain(fix.changes.filter((change) => !change.fits));
	}

	return { show };
})();
