# SPDX-License-Identifier: Apache-2.0
# Completion of the command `relay` for bash.
_relay() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    [ "$before" = "=" ] && before=${COMP_WORDS[COMP_CWORD - 2]}
    [ "$word" = "=" ] && word=""
    COMPREPLY=()
    case $before in
    --color) COMPREPLY=($(compgen -W "auto always never" -- "$word")); return ;;
    --diagnostics) COMPREPLY=($(compgen -W "full short json" -- "$word")); return ;;
    --engine) COMPREPLY=($(compgen -W "vm reference" -- "$word")); return ;;
    --jit) COMPREPLY=($(compgen -W "on off" -- "$word")); return ;;
    --opt) COMPREPLY=($(compgen -W "0 1 2 3" -- "$word")); return ;;
    esac
    case $word in
    -*) COMPREPLY=($(compgen -W "--as-written --check-core --color= --count --diagnostics= --digest --engine= --input= --jit= --memory= --nan --no-files --no-jit-cache --no-pass= --no-prelude --opt= --opt-bisect= --pass= --print-after= --progress= --residual --save= --seed= --stack= --threads= --time --transcript --tvm --twins --verify-types --why -e --help --version" -- "$word"))
        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace ;;
    *)  [ "$COMP_CWORD" = 1 ] && COMPREPLY=($(compgen -W "check convert doc doctest explain fmt ir run watch" -- "$word"))
        COMPREPLY+=($(compgen -f -- "$word"))
        compopt -o filenames ;;
    esac
}
complete -F _relay relay
