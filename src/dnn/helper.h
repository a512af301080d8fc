/* SPDX-License-Identifier: Apache-2.0
 *
 * The helper: a process with the real cuDNN, which answers the programs of a run through a socket of records. The
 * program's own process stays free of NVIDIA's libraries, six of which carry a runtime that could find our driver.
 */
#ifndef TN_DNN_HELPER_H
#define TN_DNN_HELPER_H

/* The first word of the command line that is the helper, and the descriptor on which it finds the listening socket. */
#define TN_DNN_HELPER_WORD "__cudnn"
enum { TN_DNN_HELPER_SOCKET = 3 };

/* Answers until it is killed, or its last connection ends. The exit status. */
int tn__dnn_helper_main(void);

#endif
