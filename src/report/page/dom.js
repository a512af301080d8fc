/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes elements. What the data says only ever becomes a text or the value of an attribute, never markup.
 */
const dom = (() => {
	function put(node, children) {
		for (const child of children.flat(Infinity)) {
			if (child !== null && child !== undefined && child !== false)
				node.append(child instanceof Node ? child : document.createTextNode(String(child)));
		}
		return node;
	}

	/* `attributes.on` holds listeners; true stands for an empty attribute; false and null leave one out. */
	const make = (tag, attributes = {}, ...children) => equip(document.createElement(tag), attributes, children);

	/* The same for a part of a picture. */
	const draw = (tag, attributes = {}, ...children) =>
		equip(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

	function equip(node, attributes, children) {
		for (const [name, value] of Object.entries(attributes)) {
			if (name === 'on')
				for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
			else if (value !== false && value !== null && value !== undefined)
				node.setAttribute(name, value === true ? '' : value);
		}
		return put(node, children);
	}

	const find = (name) => document.getElementById(name);

	function fill(node, ...children) {
		node.replaceChildren();
		return put(node, children);
	}

	/* Shows a section of the page, after its title, and returns it. */
	function show(name, ...children) {
		const section = find(name);
		section.hidden = false;
		return put(section, children);
	}

	/* A bar as wide as a share of its box; the style is set by property, which the page's policy allows. */
	function bar(share, name, extra = '') {
		const node = make('span', { class: `fill c-${name} ${extra}`, 'aria-hidden': 'true' });
		node.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
		return node;
	}

	const swatch = (name) => make('span', { class: `swatch c-${name}`, 'aria-hidden': 'true' });

	let saying = 0;

	/* For a screen reader, when the hand rests. */
	function say(text) {
		clearTimeout(saying);
		saying = setTimeout(() => {
			find('said').textContent = text;
		}, 250);
	}

	/* A set of buttons of which one is pressed; calls choose(value). Returns the element and set(value). */
	function choice(title, options, chosen, choose) {
		const buttons = options.map(([value, text]) =>
			make(
				'button',
				{
					type: 'button',
					'aria-pressed': String(value === chosen),
					on: {
						click: () => {
							set(value);
							choose(value);
						},
					},
				},
				text,
			),
		);
		function set(value) {
			buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(options[i][0] === value)));
		}
		return { element: make('span', { class: 'switch', role: 'group', 'aria-label': title }, buttons), set };
	}

	return { make, draw, fill, find, show, bar, swatch, say, choice };
})();
