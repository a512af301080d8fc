/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's data (doc/format/page.md), unpacked: columns instead of differences, and what was alive at a moment.
 */
const data = (() => {
	const raw = JSON.parse(dom.find('data').textContent);
	const { strings, frames, sites } = raw;

	function sums(differences) {
		const out = new Float64Array(differences.length);
		let value = 0;
		for (let i = 0; i < differences.length; i++) out[i] = value += differences[i];
		return out;
	}

	const categories = raw.categories.map(({ name, words: text }, index) => ({ name, words: text, index }));
	const category = Object.fromEntries(categories.map((item) => [item.name, item]));
	/* From the bottom of the picture to its top: what stays is below what moves. */
	const STACKED = [
		'context',
		'libraries',
		'other_processes',
		'parameters',
		'optimizer_state',
		'gradients',
		'inputs',
		'activations',
		'temporaries',
		'workspaces',
		'gathered',
		'communication',
		'other',
		'rounding',
		'cached',
	];
	const NOT_ALLOCATED = ['context', 'libraries', 'other_processes', 'cached'];
	const WITHOUT_PLACE = ['rounding', ...NOT_ALLOCATED];
	const stacked = STACKED.map((name) => category[name]).filter((item) => item && raw.timeline?.bytes[item.name]);

	/* What PyTorch's allocator does not hold of a category's bytes. */
	function beside(name, bytes) {
		if (name === 'communication') return Math.min(bytes, raw.card?.communication_bytes ?? 0);
		return NOT_ALLOCATED.includes(name) ? bytes : 0;
	}

	function readTimeline(line) {
		const first = sums(line.first);
		const count = first.length;
		const bytes = {},
			total = new Float64Array(count),
			base = new Float64Array(count);
		for (const { name } of stacked) {
			bytes[name] = sums(line.bytes[name]);
			for (let i = 0; i < count; i++) {
				total[i] += bytes[name][i];
				if (name !== 'cached') base[i] += beside(name, bytes[name][i]);
			}
		}
		return {
			count,
			states: line.states,
			first,
			bytes,
			total,
			base,
			low: sums(line.low),
			step: sums(line.step),
			moment: first.map((state, i) => state + line.at[i]),
			time: line.time_us && sums(line.time_us),
			phase: line.phase.map((text) => strings[text]),
			end: (i) => (i + 1 < count ? first[i + 1] : line.states),
			allocated: (i) => total[i] - stacked.reduce((sum, { name }) => sum + beside(name, bytes[name][i]), 0),
			exact: line.states <= count,
		};
	}

	function readIntervals({ from, life, bytes, category: of, site, label, smallest_bytes: smallest }) {
		const begin = sums(from);
		return {
			from: begin,
			until: begin.map((state, i) => (life[i] ? state + life[i] : Infinity)),
			bytes,
			of,
			site,
			label,
			smallest,
			count: begin.length,
		};
	}

	/* Each series with its sums after each change. */
	function readSmall(small) {
		let at = 0;
		return small.changes.map((changes, i) => {
			const part = (values) => sums(values.slice(at, at + changes));
			const series = {
				of: small.category[i],
				site: small.site[i],
				label: small.label[i],
				column: part(small.column),
				bytes: part(small.bytes),
				blocks: part(small.blocks),
			};
			at += changes;
			return series;
		});
	}

	const timeline = raw.timeline && readTimeline(raw.timeline);
	const intervals = readIntervals(raw.intervals);
	const small = readSmall(raw.small);
	const parents = sums(raw.stacks.parent);

	/* The last index whose value is not above `limit`; -1: none. */
	function lastBelow(values, limit) {
		let low = 0,
			high = values.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (values[middle] <= limit) low = middle + 1;
			else high = middle;
		}
		return low - 1;
	}

	function frame(index) {
		if (index < 0) return null;
		return {
			function: strings[frames.function[index]],
			file: strings[frames.file[index]],
			line: frames.line[index],
			kind: frames.kind[index],
			backward: false,
		};
	}

	/* A frame of the data with its `backward`, as a place of the format. */
	const placed = (index, backward) => (index < 0 ? null : { ...frame(index), backward: Boolean(backward) });

	const place = (site) => (site < 0 ? null : placed(sites.at[site], sites.backward[site]));
	const user = (site) => (site < 0 ? null : frame(sites.user[site]));

	/* Frame numbers of a stack, outermost first. */
	function stack(site) {
		const out = [];
		for (let at = site < 0 ? 0 : sites.stack[site]; at > 0; at = parents[at]) out.push(raw.stacks.frame[at]);
		return out.reverse();
	}

	function addAlive(lines, of, site, label, bytes, blocks) {
		const key = site * 32 + of;
		let line = lines.get(key);
		if (!line)
			lines.set(key, (line = { category: categories[of], site, bytes: 0, blocks: 0, labels: new Set() }));
		line.bytes += bytes;
		line.blocks += blocks;
		if (label && line.labels.size < 4) line.labels.add(strings[label]);
	}

	/* What was alive at a column's moment: `lines` by category and site, `blocks` (numbers of intervals), `rest`: bytes
	 * of categories that have no place. Together they are the column's total. */
	function alive(column) {
		const state = timeline.moment[column],
			lines = new Map(),
			blocks = [];
		for (let i = 0; i < intervals.count && intervals.from[i] <= state; i++) {
			if (intervals.until[i] > state) {
				addAlive(lines, intervals.of[i], intervals.site[i], intervals.label[i], intervals.bytes[i], 1);
				blocks.push(i);
			}
		}
		for (const series of small) {
			const at = lastBelow(series.column, column);
			if (at >= 0 && series.bytes[at] > 0)
				addAlive(lines, series.of, series.site, series.label, series.bytes[at], series.blocks[at]);
		}
		const found = {};
		for (const line of lines.values()) found[line.category.name] = (found[line.category.name] ?? 0) + line.bytes;
		const rest = stacked
			.map((item) => ({ category: item, bytes: timeline.bytes[item.name][column] - (found[item.name] ?? 0) }))
			.filter(({ bytes }) => bytes > 0);
		return { column, state, blocks, rest, lines: [...lines.values()].sort((a, b) => b.bytes - a.bytes) };
	}

	const remembered = { column: -1 };

	function aliveAt(column) {
		if (remembered.column !== column) Object.assign(remembered, { column, answer: alive(column) });
		return remembered.answer;
	}

	/* "step 3, forward" */
	function when(column) {
		const { step, phase } = timeline;
		return [step[column] > 0 && `step ${words.count(step[column])}`, phase[column]].filter(Boolean).join(', ');
	}

	words.learn(
		[
			...frames.file.map((file) => strings[file]),
			...[raw.headline, ...raw.findings, ...raw.regions].flatMap(({ at }) => at ?? []).map(({ file }) => file),
		].filter(Boolean),
	);

	return {
		raw,
		categories,
		category,
		stacked,
		timeline,
		intervals,
		sums,
		frame,
		place,
		placed,
		user,
		stack,
		aliveAt,
		when,
		WITHOUT_PLACE,
		strings,
	};
})();
