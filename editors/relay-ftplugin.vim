" SPDX-License-Identifier: Apache-2.0
" Relay: comments, indentation, and `:make`, which checks the file.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1
setlocal commentstring=//\ %s comments=:///,:// shiftwidth=2 softtabstop=2 expandtab
setlocal makeprg=relay\ check\ --diagnostics=short\ %
setlocal errorformat=%f:%l:%c:\ %trror[%*[^]]]:\ %m,%f:%l:%c:\ %tarning[%*[^]]]:\ %m
