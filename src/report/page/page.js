/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts the parts together. Holds the one thing that they share: the moment chosen.
 */
const { raw, timeline: line } = data;
const chosen = { column: 0, waiting: false };

/* ---- the moment ---- */

function choose(column, say = true) {
	chosen.column = Math.max(0, Math.min(line.count - 1, column));
	chosen.say = say;
	if (!chosen.waiting) {
		chosen.waiting = true;
		requestAnimationFrame(showMoment);
	}
}

function showMoment() {
	const { column } = chosen;
	chosen.waiting = false;
	const alive = data.aliveAt(column);
	timeline.set(column);
	flame.set(alive);
	holders.set(alive);
	segments.set(column);
	bar.set(column);
	document.documentElement.dataset.column = String(column);
	if (chosen.say && document.activeElement?.id !== 'chart') dom.say(timeline.describe(column));
}

/* ---- the bar that stays in sight ---- */

const bar = (() => {
	let told, named;

	/* The first column of the step before or after; of the same step when it has begun before. */
	function stepFrom(column, direction) {
		const at = line.step[column];
		let i = column;
		while (i + direction >= 0 && i + direction < line.count && line.step[i] === at) i += direction;
		if (direction > 0) return i;
		while (i > 0 && line.step[i - 1] === line.step[i]) i--;
		return i;
	}

	const button = (text, label, action) =>
		dom.make(
			'button',
			{ type: 'button', 'aria-label': label, title: label, on: { click: () => choose(action(chosen.column)) } },
			text,
		);

	function build() {
		const stepped = line.step.some((step) => step > 0);
		named = dom.choice(
			'Moments',
			raw.moments.map((moment) => [moment.column, moment.words]),
			-1,
			choose,
		);
		told = dom.make('span', { class: 'told', id: 'moment-told' });
		dom.show(
			'moment',
			named.element,
			dom.make(
				'span',
				{ class: 'switch' },
				stepped && button('⇤', 'A step back', (column) => stepFrom(column, -1)),
				button('←', 'A moment back', (column) => column - 1),
				button('→', 'A moment on', (column) => column + 1),
				stepped && button('⇥', 'A step on', (column) => stepFrom(column, 1)),
			),
			told,
		);
	}

	function set(column) {
		named.set(column);
		told.textContent = timeline.describe(column);
	}

	return { build, set };
})();

/* ---- colours and paper ---- */

function redraw() {
	colours.forget();
	if (line) timeline.draw();
	segments.draw();
}

function buildTheme() {
	const set = (name) => {
		if (name) document.documentElement.dataset.theme = name;
		else delete document.documentElement.dataset.theme;
		redraw();
	};
	dom.find('theme').append(
		dom.choice(
			'Colours',
			[
				['', 'Auto'],
				['light', 'Light'],
				['dark', 'Dark'],
			],
			'',
			set,
		).element,
	);
	for (const query of ['print', '(prefers-color-scheme: dark)'])
		matchMedia(query).addEventListener('change', redraw);
	addEventListener('beforeprint', redraw);
	addEventListener('afterprint', redraw);
}

/* ---- all of it ---- */

sections.about();
sections.headline();
changes.show();
batches.show();
frontier.show();
sections.findings((column) => {
	choose(column);
	dom.find('time').scrollIntoView();
});
sections.comparison();
sections.regions();
sections.assumptions();
sections.network();
if (line) {
	timeline.build(choose);
	bar.build();
	flame.build();
	holders.build();
	segments.build();
	choose(raw.moments.length > 0 ? raw.moments[0].column : line.count - 1, false);
}
buildTheme();
