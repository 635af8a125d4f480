"""What Click's completion leaves out: words that a shell splits at `:` and `=`, and values joined to their options."""

from __future__ import annotations

import os

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

_BASH = """\
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


class _WholeWords(ShellComplete):
    """A value that is joined to its option is a part of the word that shells put in place of what is typed."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        option = incomplete[: incomplete.find("=") + 1] if incomplete.startswith("-") else ""
        return [
            CompletionItem(option + item.value, type=item.type, help=item.help) if item.type == "plain" else item
            for item in super().get_completions(args, incomplete)
        ]


class Bash(_WholeWords, BashComplete):
    """The whole line is ours to split: bash's own words end at `:` and `=` too, of which addresses and times are
    full."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        # With something at its end, the last word is there even if nothing of it is typed.
        words = split_arg_string(os.environ["COMP_LINE"] + _CURSOR)
        return words[1:-1], words[-1].removesuffix(_CURSOR)

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Without what stays on the line: bash puts them where it thinks that the word began."""
        kept = len(incomplete) - len(os.environ["COMP_REPLACED"])
        return [CompletionItem(item.value[kept:], type=item.type) for item in super().get_completions(args, incomplete)]


class Zsh(_WholeWords, ZshComplete):
    pass


class Fish(_WholeWords, FishComplete):
    pass


def use_own() -> None:
    """Instead of Click's."""
    for made in (Bash, Zsh, Fish):
        add_completion_class(made)
