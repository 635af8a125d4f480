"""Bash's side of completion: the whole line is ours to split, as bash's own words end at `:` and `=` too, of which
addresses and times are full."""

from __future__ import annotations

import os

from click.shell_completion import BashComplete, CompletionItem, split_arg_string

_SCRIPT = """\
%(complete_func)s() {
    local type value
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_REPLACED="$2" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_CURSOR = "x"


class LineComplete(BashComplete):
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        # With something at its end, the last word is there even if nothing of it is typed.
        words = split_arg_string(os.environ["COMP_LINE"] + _CURSOR)
        return words[1:-1], words[-1].removesuffix(_CURSOR)

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Without what stays on the line: bash puts them where it thinks that the word began."""
        option = incomplete[: incomplete.find("=") + 1] if incomplete.startswith("-") else ""
        kept = len(incomplete) - len(os.environ["COMP_REPLACED"])
        return [
            CompletionItem((option + item.value)[kept:], type=item.type)
            for item in super().get_completions(args, incomplete)
        ]
