/* SPDX-License-Identifier: Apache-2.0
 *
 * Who held the memory at a moment: a box for each category, and below it the calls that asked for it, outermost first,
 * as wide as their bytes. What is too thin to be seen is one box, until it is looked at more closely.
 */
const flame = (() => {
	const { make, fill } = dom;
	const ROW = 21,
		THINNEST = 0.0012;
	const NAME_FITS = 22,
		BYTES_FIT = 150; /* pixels */
	const view = { width: 0, alive: null, root: null, top: null, torch: false, boxes: [] };
	let area, told, trail;

	/* ---- the tree ---- */

	const node = (parent, name, category, bytes = 0) => ({
		parent,
		name,
		category,
		bytes,
		children: new Map(),
		frame: null,
	});

	function child(parent, key, name, frame = null) {
		let found = parent.children.get(key);
		if (!found) {
			parent.children.set(key, (found = node(parent, name, parent.category)));
			found.frame = frame;
		}
		return found;
	}

	function addLine(top, line) {
		let at = top;
		at.bytes += line.bytes;
		const add = (key, name, frame) => {
			at = child(at, key, name, frame);
			at.bytes += line.bytes;
		};
		for (const number of data.stack(line.site)) {
			const frame = data.frame(number);
			if (view.torch || frame.kind < 2) add(number, frame.function, frame);
		}
		if (line.site < 0) add('many', 'many small ones');
		else if (at === top) add('none', words.place(data.place(line.site)), data.place(line.site));
		if (data.place(line.site)?.backward) add('backward', 'its backward pass');
	}

	function grow(alive) {
		const root = node(null, 'everything', null);
		const tops = new Map(data.stacked.map((item) => [item.name, node(root, item.words, item.name)]));
		for (const line of alive.lines) addLine(tops.get(line.category.name), line);
		for (const { category, bytes } of alive.rest) tops.get(category.name).bytes += bytes;
		for (const [name, top] of tops) if (top.bytes > 0) root.children.set(name, top);
		root.bytes = [...root.children.values()].reduce((sum, top) => sum + top.bytes, 0);
		return root;
	}

	/* ---- boxes ---- */

	function wordsOf(item) {
		const { frame } = item;
		return frame ? `${item.name} ${words.file(frame.file)}${words.joint(frame.file)}${frame.line}` : item.name;
	}

	function describe(item) {
		const place = item.frame ? `${item.name}  ${item.frame.file}${words.joint(item.frame.file)}${item.frame.line}` : item.name;
		return `${place}: ${words.bytes(item.bytes)}, ${words.percent(item.bytes / view.root.bytes)} of all`;
	}

	function box(item, level, left, width) {
		const element = make(
			'div',
			{
				class: `box c-${item.category ?? 'all'}${item.joined ? ' joined' : ''}`,
				role: 'treeitem',
				tabindex: '-1',
				'aria-level': String(level + 1),
				'aria-label': describe(item),
				title: describe(item),
			},
			width * view.width > NAME_FITS &&
				make(
					'span',
					{},
					make('i', {}, wordsOf(item)),
					width * view.width > BYTES_FIT && make('b', {}, words.bytes(item.bytes)),
				),
		);
		element.style.left = `${left * 100}%`;
		element.style.width = `${width * 100}%`;
		element.style.top = `${level * ROW}px`;
		view.boxes.push({ item, element, level, left });
		return element;
	}

	/* The children that are wide enough to be seen, and one for all others together. */
	function parts(item, wide) {
		const all = [...item.children.values()].sort((a, b) => b.bytes - a.bytes);
		const seen = all.filter(({ bytes }) => bytes * wide >= THINNEST),
			thin = all.slice(seen.length);
		const bytes = thin.reduce((sum, below) => sum + below.bytes, 0);
		if (bytes * wide < THINNEST) return seen;
		const rest = node(item, `${words.count(thin.length)} more`, item.category, bytes);
		rest.children = new Map(thin.map((below, i) => [i, below]));
		rest.joined = true;
		return [...seen, rest];
	}

	function boxes() {
		const out = [],
			ancestors = [];
		for (let at = view.top.parent; at; at = at.parent) ancestors.unshift(at);
		view.boxes = [];
		view.width = area.clientWidth;
		ancestors.forEach((item, level) => {
			out.push(box(item, level, 0, 1));
			out.at(-1).classList.add('above');
		});
		let deepest = 0;
		const place = (item, level, left, width) => {
			deepest = Math.max(deepest, level);
			out.push(box(item, level, left, width));
			if (item.joined && item !== view.top) return;
			let at = left;
			for (const below of parts(item, width / item.bytes)) {
				place(below, level + 1, at, (width * below.bytes) / item.bytes);
				at += (width * below.bytes) / item.bytes;
			}
		};
		place(view.top, ancestors.length, 0, 1);
		area.style.height = `${(deepest + 1) * ROW}px`;
		return out;
	}

	function draw(focused = null) {
		fill(area, boxes());
		const first = view.boxes.find(({ item }) => item === view.top);
		first.element.tabIndex = 0;
		trail.hidden = view.top === view.root;
		told.textContent = describe(view.top);
		if (focused) (view.boxes.find(({ item }) => item === focused) ?? first).element.focus();
	}

	function zoom(item, focus) {
		view.top = item;
		draw(focus ? item : null);
	}

	/* ---- hand and keys ---- */

	const entryOf = (target) => view.boxes.find(({ element }) => element === target.closest('.box'));

	function neighbour(entry, key) {
		const { item, level } = entry;
		if (key === 'ArrowUp') return view.boxes.find((other) => other.item === item.parent);
		if (key === 'ArrowDown')
			return view.boxes.find((other) => other.level === level + 1 && other.left >= entry.left - 1e-9);
		const row = view.boxes.filter((other) => other.level === level).sort((a, b) => a.left - b.left);
		return row[row.indexOf(entry) + (key === 'ArrowRight' ? 1 : -1)];
	}

	function key(event) {
		const entry = entryOf(event.target);
		if (!entry || event.ctrlKey || event.metaKey || event.altKey) return;
		if (event.key.startsWith('Arrow')) {
			neighbour(entry, event.key)?.element.focus();
		} else if (event.key === 'Enter' || event.key === ' ') {
			zoom(entry.item, true);
		} else if (event.key === 'Escape') {
			zoom(view.root, true);
		} else {
			return;
		}
		event.preventDefault();
	}

	function click(event) {
		const entry = entryOf(event.target);
		if (entry) zoom(entry.item, true);
	}

	function tell(event) {
		const entry = entryOf(event.target);
		if (entry) told.textContent = describe(entry.item);
	}

	function build() {
		area = make('div', {
			class: 'flames',
			role: 'tree',
			'aria-label': 'Who held the memory: categories, then calls',
			on: { click, keydown: key, pointerover: tell, focusin: tell },
		});
		told = make('p', { class: 'told' });
		trail = make(
			'button',
			{ type: 'button', hidden: true, on: { click: () => zoom(view.root, true) } },
			'Show all',
		);
		const torch = make('input', {
			type: 'checkbox',
			on: {
				change: () => {
					view.torch = torch.checked;
					set(view.alive);
				},
			},
		});
		dom.show(
			'flame',
			make(
				'p',
				{ class: 'help' },
				'As wide as its bytes: below each category the calls that asked for them, the ',
				'outermost first. Click one to look closer, Escape to come back. ',
				make('label', {}, torch, ' with the calls inside PyTorch'),
				' ',
				trail,
			),
			area,
			told,
		);
	}

	function set(alive) {
		view.alive = alive;
		view.top = view.root = grow(alive);
		draw();
	}

	return { build, set };
})();
