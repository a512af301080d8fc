/* SPDX-License-Identifier: Apache-2.0
 *
 * User objects (cudaUserObjectCreate and following): a program's data that live as long as a graph or an executable.
 */
#ifndef TN_VGPU_CUDART_RT_USER_OBJECTS_H
#define TN_VGPU_CUDART_RT_USER_OBJECTS_H

/* Gives up what a graph or an executable keeps. */
void tn__rt_release_objects(const void *owner);
/* An executable keeps what its graph keeps. */
void tn__rt_share_objects(const void *executable, const void *graph);

#endif
