"""Texts of people who mean harm: markup that acts when it is parsed, quotes that end attributes, misleading letters."""

from __future__ import annotations

ACTS = "window.attacked = true"
MARKUP = f'"><img src=x onerror="{ACTS}"><script>{ACTS}</script>'
GROUP = f"<img src=x onerror='{ACTS}'>"
"""Without a slash, as a path of the REST API cannot say one in a group's name."""
KEY = f"key-{MARKUP}"
HEADER_NAME = f"header-<svg onload={ACTS}>"
HEADER_VALUE = f"javascript:{ACTS}"
CLIENT = f"client-<b onmouseover={ACTS}>"
VALUE = {"note": MARKUP, "reversed": "\u202egnp.exe", "__proto__": {"polluted": True}, "constructor": "</script>"}
BYTES = bytes(range(256))
"""No text at all."""
