" SPDX-License-Identifier: Apache-2.0
" Relay: syntax.
if exists("b:current_syntax")
  finish
endif
syntax keyword relayKeyword let in if then else match fn def type when with where import operator extern derivative tangent no_derivative
syntax keyword relaySoft list sq Grad Ref Zero None it
syntax keyword relayType bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 String Tensor List Option ref
syntax keyword relayConstant True False nan inf
syntax match relayName "[%@][A-Za-z_0-9.]\+"
syntax match relayConstructor "\<[A-Z][A-Za-z0-9_]*\>"
syntax keyword relayType String Tensor List Option
syntax keyword relayConstant True False
syntax match relayNumber "\<[0-9]\+\(\.[0-9]\+\)\?\([eE][-+]\?[0-9]\+\)\?\(bf16\|[iuf]\(8\|16\|32\|64\)\?\)\?\>"
syntax match relayOperator "|>\|>>\|:=\|=>\|->\|@@\|\*\*\|++\|&&\|||"
syntax region relayString start=+"+ skip=+\\\\\|\\"+ end=+"+
syntax region relayComment start="/\*" end="\*/" contains=relayComment
syntax match relayComment "//.*"
syntax match relayDoc "///.*"
highlight default link relayKeyword Keyword
highlight default link relaySoft Special
highlight default link relayType Type
highlight default link relayConstant Constant
highlight default link relayConstructor Structure
highlight default link relayName Identifier
highlight default link relayNumber Number
highlight default link relayOperator Operator
highlight default link relayString String
highlight default link relayComment Comment
highlight default link relayDoc SpecialComment
let b:current_syntax = "relay"
