/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures and places in words for a person. Bytes read as in the text report.
 */
const words = (() => {
	const GIB = 2 ** 30,
		MIB = 2 ** 20;
	const grouped = new Intl.NumberFormat('en');

	function bytes(figure) {
		if (figure === null || figure === undefined) return 'unknown';
		const size = Math.abs(figure);
		if (size >= GIB) return `${(figure / GIB).toFixed(2)} GiB`;
		if (size >= MIB) return `${(figure / MIB).toFixed(1)} MiB`;
		return size >= 1024 ? `${(figure / 1024).toFixed(1)} KiB` : `${figure} B`;
	}

	const count = (figure) => grouped.format(figure);

	const many = (figure, one, more) => `${count(figure)} ${figure === 1 ? one : more}`;

	function percent(share) {
		if (!(share > 0)) return '0 %';
		return share < 0.001 ? '< 0.1 %' : `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
	}

	function change(figure) {
		return figure === 0 ? '0' : `${figure > 0 ? '+' : '−'}${bytes(Math.abs(figure))}`;
	}

	/* Files by their last part; where two share it, by as many parts as tell them apart. */
	const shown = new Map();

	function learn(files) {
		const parts = (file, number) => file.split('/').slice(-number).join('/');
		for (let number = 1, open = [...new Set(files)]; open.length > 0; number++) {
			const named = new Map();
			for (const file of open)
				named.set(parts(file, number), [...(named.get(parts(file, number)) ?? []), file]);
			open = [];
			for (const [name, same] of named) {
				if (same.length === 1 || number === 6)
					same.forEach((file) => shown.set(file, number === 6 ? file : name));
				else open.push(...same);
			}
		}
	}

	const file = (path) => shown.get(path) ?? path;

	/* What stands between a file and a line: of a notebook's cell in its place words. */
	const joint = (path) => (/^cell \d+( \(run \d+\))?$/.test(path) ? ', line ' : ':');

	/* "model.py:88 Attention.forward" of a place of the format; `full`: with the whole path. */
	function place(at, full = false) {
		if (!at || at.file === null) return 'no line known';
		const line = at.line > 0 ? `${joint(at.file)}${at.line}` : '';
		const name = at.function ? ` ${at.function}` : '';
		return `${at.backward ? 'backward of ' : ''}${full ? at.file : file(at.file)}${line}${name}`;
	}

	return { bytes, count, many, percent, change, learn, file, joint, place };
})();
