"""Times as a person types them into the browser, which has a time zone of its own."""

from __future__ import annotations

from console_parts.viewer import Viewer


def local_time(viewer: Viewer, timestamp_ms: int) -> str:
    """To the second, for an input of type datetime-local."""
    return str(
        viewer.script(
            f"(() => {{ const at = new Date({timestamp_ms}); const pad = (number) => String(number).padStart(2, '0');"
            " return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}"
            "T${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`; })()"
        )
    )
