/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory over time: the picture (chart.js) under hand and keys, in words, and as a table. The chosen moment belongs to
 * page.js.
 */
const timeline = (() => {
	const { make, fill } = dom;
	const { view, columnAt, stateAt } = chart;
	const line = data.timeline;
	const { card, moments } = data.raw;
	const DRAG = 6; /* pixels: less is a click */
	let canvas, frame, choose, zoomedOut, readout;

	const draw = () => chart.draw(canvas);

	/* ---- hand and keys ---- */

	function zoom(from, to) {
		const least = Math.min(20, line.states);
		const span = Math.min(line.states, Math.max(least, to - from));
		view.from = Math.max(0, Math.min(from, line.states - span));
		view.to = view.from + span;
		zoomedOut.hidden = span === line.states;
		draw();
	}

	function zoomBy(factor) {
		const middle = line.moment[view.chosen],
			span = (view.to - view.from) * factor;
		zoom(middle - span / 2, middle + span / 2);
	}

	/* Brings the chosen column back into a zoomed picture. */
	function follow() {
		const at = line.moment[view.chosen],
			span = view.to - view.from;
		if (at < view.from || at >= view.to) zoom(at - span / 2, at + span / 2);
	}

	const offset = (event) => event.clientX - canvas.getBoundingClientRect().left;

	function press(event) {
		if (event.button === 0) {
			view.drag = { x: offset(event), to: offset(event), wide: false };
			canvas.setPointerCapture(event.pointerId);
		}
	}

	function move(event) {
		const x = offset(event);
		view.over = columnAt(x);
		if (view.drag) {
			view.drag.to = x;
			view.drag.wide = view.drag.wide || Math.abs(x - view.drag.x) >= DRAG;
		}
		canvas.title = view.drag ? '' : describe(view.over);
		draw();
	}

	function release(event) {
		const drag = view.drag;
		view.drag = null;
		if (drag && drag.wide) zoom(stateAt(Math.min(drag.x, drag.to)), stateAt(Math.max(drag.x, drag.to)));
		else if (drag) choose(columnAt(offset(event)));
	}

	function leave() {
		view.over = -1;
		draw();
	}

	const KEYS = {
		ArrowLeft: (event) => choose(view.chosen - (event.shiftKey ? 20 : 1)),
		ArrowRight: (event) => choose(view.chosen + (event.shiftKey ? 20 : 1)),
		ArrowDown: () => choose(view.chosen - 1),
		ArrowUp: () => choose(view.chosen + 1),
		PageDown: () => choose(view.chosen - 100),
		PageUp: () => choose(view.chosen + 100),
		Home: () => choose(0),
		End: () => choose(line.count - 1),
		'+': () => zoomBy(0.5),
		'=': () => zoomBy(0.5),
		'-': () => zoomBy(2),
		0: () => zoom(0, line.states),
	};

	function key(event) {
		const action = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
		if (action) {
			event.preventDefault();
			action(event);
		}
	}

	/* ---- words ---- */

	/* "event 1,234 of 4,000, step 2, forward: 7.31 GiB" */
	function describe(column) {
		const when = data.when(column);
		return (
			`event ${words.count(line.moment[column])} of ${words.count(line.states - 1)}${when ? `, ${when}` : ''}: ` +
			words.bytes(line.total[column])
		);
	}

	function largest(column) {
		return data.stacked
			.map((item) => [line.bytes[item.name][column], item.words])
			.sort((a, b) => b[0] - a[0])
			.slice(0, 3)
			.map(([bytes, name]) => `${name} ${words.bytes(bytes)}`)
			.join(', ');
	}

	/* The categories of a moment, as they lie in the picture. */
	function categories(column) {
		const total = line.total[column],
			wide = Math.max(...data.stacked.map(({ name }) => line.bytes[name][column]), 1);
		const rows = [...data.stacked].reverse().map(({ name, words: called }) => {
			const bytes = line.bytes[name][column];
			return make(
				'tr',
				{ class: bytes ? '' : 'none' },
				make('th', { scope: 'row' }, dom.swatch(name), called),
				make('td', { class: 'figure' }, words.bytes(bytes)),
				make('td', { class: 'share' }, dom.bar(bytes / wide, name)),
			);
		});
		const of = card ? ` of ${words.bytes(card.total_bytes)}` : '';
		return make(
			'table',
			{ class: 'readout' },
			make('caption', {}, make('strong', {}, words.bytes(total)), of, ' on the device'),
			make(
				'thead',
				{ class: 'unseen' },
				make(
					'tr',
					{},
					['what', 'bytes', 'share'].map((name) => make('th', { scope: 'col' }, name)),
				),
			),
			make('tbody', {}, rows),
		);
	}

	/* The picture as a table, for those who cannot see it: at most so many moments, and all that are named. */
	function asTable() {
		const step = Math.max(1, Math.ceil(line.count / 60));
		const columns = [];
		for (let i = 0; i < line.count; i++)
			if (i % step === 0 || moments.some((moment) => moment.column === i)) columns.push(i);
		const names = new Map(moments.map((moment) => [moment.column, moment.words]));
		const head = ['event', 'when', 'total', ...data.stacked.map((item) => item.words)];
		return make(
			'div',
			{ class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Memory over time' },
			make(
				'table',
				{},
				make(
					'thead',
					{},
					make(
						'tr',
						{},
						head.map((name, i) => make('th', { scope: 'col', class: i > 1 ? 'figure' : '' }, name)),
					),
				),
				make(
					'tbody',
					{},
					columns.map((i) =>
						make(
							'tr',
							{},
							make('th', { scope: 'row' }, words.count(line.moment[i])),
							make('td', {}, [names.get(i), data.when(i)].filter(Boolean).join(': ')),
							[line.total[i], ...data.stacked.map(({ name }) => line.bytes[name][i])].map((bytes) =>
								make('td', { class: 'figure' }, words.bytes(bytes)),
							),
						),
					),
				),
			),
		);
	}

	function build(onChoice) {
		choose = onChoice;
		view.to = line.states;
		canvas = make('canvas', {
			id: 'chart',
			tabindex: '0',
			role: 'slider',
			'aria-label': 'Moment of the timeline',
			'aria-valuemin': '0',
			'aria-valuemax': String(line.count - 1),
			'aria-describedby': 'chart-help',
			on: {
				pointerdown: press,
				pointermove: move,
				pointerup: release,
				pointerleave: leave,
				keydown: key,
				dblclick: () => zoom(0, line.states),
			},
		});
		frame = make('div', { class: 'chart' }, canvas);
		readout = make('div', { id: 'readout' });
		zoomedOut = make(
			'button',
			{ type: 'button', id: 'whole', hidden: true, on: { click: () => zoom(0, line.states) } },
			'Whole run',
		);
		const alternative = make(
			'details',
			{ id: 'chart-table', on: { toggle: fillTable } },
			make('summary', {}, 'The picture as a table'),
		);
		function fillTable() {
			if (alternative.open && alternative.childElementCount === 1) alternative.append(asTable());
		}
		dom.show(
			'time',
			make(
				'p',
				{ class: 'help', id: 'chart-help' },
				'Click a moment, or use the arrow keys, to see what was alive then; drag to look closer. ',
				'An event is one allocation or one free. ',
				line.exact
					? ''
					: 'Each column is the fullest moment of its part of the run, a thin line in it the lowest. ',
				zoomedOut,
			),
			make('div', { class: 'beside' }, frame, readout),
			alternative,
		);
		new ResizeObserver(() => {
			if (frame.clientWidth !== view.width) draw();
		}).observe(frame);
	}

	function set(column) {
		view.chosen = column;
		canvas.setAttribute('aria-valuenow', String(column));
		canvas.setAttribute('aria-valuetext', `${describe(column)}; ${largest(column)}`);
		fill(readout, categories(column));
		follow();
		draw();
	}

	return { build, set, draw, describe };
})();
