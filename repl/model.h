/* SPDX-License-Identifier: Apache-2.0 */
/* Models on the command line: `relay run m.onnx` and `relay convert m.onnx -o m.rly`. */
#ifndef REPL_MODEL_H
#define REPL_MODEL_H

#include "repl/session.h"

/* Whether the file is a model. */
bool session_is_model(Session *s, const char *path);
/* Runs a model on files: inputs "name=x.npy". Each output is shown, or with `save` written to `save/NAME.npy`. */
SessionStatus session_run_model(Session *s, const char *path, const char *const *inputs,
                                int ninputs, const char *save);
/* Writes the model, or a graph of TVM (a .json), as a Relay program, and what it stores as a safetensors file beside it; or, where `to` ends in .onnx,
 * the function `main` of a Relay program as a model. */
SessionStatus session_convert_model(Session *s, const char *path, const char *to);

#endif
