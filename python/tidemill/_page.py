"""Pages within a notebook."""

from __future__ import annotations

from html import escape


def framed(page: str, height: int = 640) -> str:
    """A page in a frame of its own, so that neither its styles nor its scripts reach the notebook."""
    source = escape(page, quote=True)
    style = f"width: 100%; height: {height}px; border: 0"
    return f'<iframe srcdoc="{source}" style="{style}" sandbox="allow-scripts"></iframe>'
