#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The 6.7 B job as an ordinary user, with overcommit refused and a /dev/shm of 64 MB. Needs root, and changes
# vm.overcommit_memory for as long as it runs.
#
#     bench/no_overcommit.sh PYTHON [RESULT.json]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=$1
result=${2:-$root/bench/results/no_overcommit.json}
before=$(cat /proc/sys/vm/overcommit_memory)
folder=$(mktemp -d)
chown 65534 "$folder"
trap 'echo "$before" >/proc/sys/vm/overcommit_memory; rm -rf "$folder"' EXIT
echo 2 >/proc/sys/vm/overcommit_memory
unshare -m sh -c "
	mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm
	cd $folder
	HOME=$folder setpriv --reuid=65534 --regid=65534 --clear-groups \
		$root/build/bin/tonnage run --gpu h200 --json $folder/result.json -- $python $root/bench/llama.py 7b"
cp "$folder/result.json" "$result"
