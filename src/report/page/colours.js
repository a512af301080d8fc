/* SPDX-License-Identifier: Apache-2.0
 *
 * The colours of the style sheet as they are now, for what is drawn and not styled.
 */
const colours = (() => {
	let known = null;

	function now() {
		if (known) return known;
		const probe = dom.find('said');
		const get = (name) => {
			probe.style.color = `var(--${name}, var(--c-other))`;
			return getComputedStyle(probe).color;
		};
		const of = new Map(data.categories.map(({ name }) => [name, get(`c-${name}`)]));
		known = {
			of: (name) => of.get(name),
			ink: get('ink'),
			soft: get('soft'),
			rule: get('rule'),
			page: get('page'),
			bad: get('bad'),
			link: get('link'),
			veil: get('veil'),
			free: get('free'),
			hatch: get('hatch'),
			bands: [0, 1, 2, 3].map((number) => get(`band-${number}`)),
			font: `12px ${getComputedStyle(document.body).fontFamily}`,
		};
		return known;
	}

	return {
		now,
		forget: () => {
			known = null;
		},
	};
})();
