/* SPDX-License-Identifier: Apache-2.0
 *
 * A table with search and sorting, of which as many rows are made as are asked for. Knows nothing of memory.
 */
const table = (() => {
	const { make, fill } = dom;
	const AT_FIRST = 40,
		MORE = 200;

	/* columns: [{words, value(row) to sort by, cell(row) to show, figure: right-aligned}]; options: caption, search(row):
	 * the text that is searched (none: no search), unit: [one, more], sum(rows): words beside the count, opens(row):
	 * whether it can be opened, open(row): what it shows then, opener: the column with the button. Returns {element,
	 * set(rows)}. */
	function create(columns, options) {
		const view = {
			rows: [],
			order: columns.findIndex((column) => column.figure),
			down: true,
			shown: AT_FIRST,
			query: [],
		};
		const body = make('tbody');
		const heads = columns.map((column, i) =>
			make(
				'th',
				{ scope: 'col', class: column.figure ? 'figure' : '' },
				make('button', { type: 'button', on: { click: () => sortBy(i) } }, column.words),
			),
		);
		const counted = make('span', { class: 'counted', role: 'status' });
		const more = make('button', { type: 'button', class: 'more', on: { click: showMore } });
		const input = make('input', {
			type: 'search',
			placeholder: 'Search',
			'aria-label': `Search: ${options.caption}`,
			autocomplete: 'off',
			spellcheck: 'false',
			on: { input: search },
		});
		const element = make(
			'div',
			{ class: 'tabled' },
			make('div', { class: 'tools' }, options.search && input, counted),
			make(
				'div',
				{ class: 'scroll', tabindex: '0', role: 'region', 'aria-label': options.caption },
				make(
					'table',
					{},
					make('caption', { class: 'unseen' }, options.caption),
					make('thead', {}, make('tr', {}, heads)),
					body,
				),
			),
			more,
		);

		function search() {
			view.query = input.value.toLowerCase().split(/\s+/).filter(Boolean);
			view.shown = AT_FIRST;
			draw();
		}

		function sortBy(i) {
			view.down = view.order === i ? !view.down : Boolean(columns[i].figure);
			view.order = i;
			draw();
		}

		function showMore() {
			view.shown += MORE;
			draw();
		}

		function matching() {
			if (view.query.length === 0) return [...view.rows];
			return view.rows.filter((row) => {
				const text = options.search(row).toLowerCase();
				return view.query.every((word) => text.includes(word));
			});
		}

		function compare(a, b) {
			const left = columns[view.order].value(a),
				right = columns[view.order].value(b);
			const order = typeof left === 'number' ? left - right : String(left).localeCompare(String(right));
			return view.down ? -order : order;
		}

		function rowOf(row) {
			const cells = columns.map((column) =>
				make('td', { class: column.figure ? 'figure' : (column.kind ?? '') }, column.cell(row)),
			);
			const line = make('tr', {}, cells);
			if (options.open && options.opens(row))
				cells[options.opener].prepend(opener(line, () => options.open(row)));
			return line;
		}

		function opener(line, content) {
			let below = null;
			const button = make('button', {
				type: 'button',
				class: 'opener',
				'aria-expanded': 'false',
				'aria-label': 'More',
				on: { click: toggle },
			});
			function toggle() {
				button.setAttribute('aria-expanded', String(!below));
				if (below) below.remove();
				below = below
					? null
					: make('tr', { class: 'opened' }, make('td', { colspan: columns.length }, content()));
				if (below) line.after(below);
			}
			return button;
		}

		function draw() {
			const rows = matching().sort(compare);
			heads.forEach((head, i) => {
				if (i === view.order) head.setAttribute('aria-sort', view.down ? 'descending' : 'ascending');
				else head.removeAttribute('aria-sort');
			});
			fill(body, rows.slice(0, view.shown).map(rowOf));
			counted.textContent =
				(view.query.length > 0 ? `${words.count(rows.length)} of ` : '') +
				words.many(view.rows.length, ...options.unit) +
				(options.sum ? `, ${options.sum(rows)}` : '');
			more.hidden = rows.length <= view.shown;
			more.textContent = `Show ${words.count(Math.min(MORE, rows.length - view.shown))} more`;
		}

		function set(rows) {
			view.rows = rows;
			draw();
		}

		return { element, set };
	}

	/* A table of rows of cells; `figures` are the columns of numbers. */
	function plain(caption, heads, figures, rows) {
		const cell = (content, i, head) =>
			make(
				head || i === 0 ? 'th' : 'td',
				{ scope: head ? 'col' : i === 0 ? 'row' : null, class: figures.includes(i) ? 'figure' : '' },
				content,
			);
		return make(
			'div',
			{ class: 'scroll' },
			make(
				'table',
				{ class: 'regions' },
				make('caption', { class: 'unseen' }, caption),
				make('thead', {}, make('tr', {}, heads.map((head, i) => cell(head, i, true)))),
				make('tbody', {}, rows.map((row) => make('tr', {}, row.map((content, i) => cell(content, i, false))))),
			),
		);
	}

	return { create, plain };
})();
