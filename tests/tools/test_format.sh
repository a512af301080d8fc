#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every C file is laid out as .clang-format says (tools/format), and a file that is not is named.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tools/format --check
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bench,cli,examples,fuzz,include,src,tests}
cp .clang-format "$work"
cp -r tools "$work"
printf 'int\nmain(void) { return 0; }\n' >"$work/src/one.c"
if "$work/tools/format" --check 2>"$work/said"; then
	echo "a file that is laid out otherwise was not named"
	exit 1
fi
grep -q 'src/one.c' "$work/said"
"$work/tools/format"
"$work/tools/format" --check
