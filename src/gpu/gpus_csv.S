/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue's text inside the library, as it stands in gpus.csv, with a final zero byte.
 */
	.section .rodata
	.globl tn__gpus_csv
	.hidden tn__gpus_csv
	.type tn__gpus_csv, @object
tn__gpus_csv:
	.incbin TN_GPUS_CSV
	.byte 0
	.size tn__gpus_csv, . - tn__gpus_csv
	.section .note.GNU-stack, "", @progbits
