/* SPDX-License-Identifier: Apache-2.0 */
/* What the beginning of a file says of its tensor, for types that are found before it is read. */
#ifndef EVAL_FILE_HEADER_H
#define EVAL_FILE_HEADER_H

#include "types/core/env.h"

/* Of a regular file that holds one tensor and is not compressed: NPY, IDX, PNG and safetensors by their
 * first 64 KB, CSV whole up to 16 MB. folder: where the program stands, ending in `/`, or "". False where
 * nothing is known; no mistake is reported, because reading the file will. */
bool file_read_header(const char *path, const char *folder, FileHeader *out);

#endif
