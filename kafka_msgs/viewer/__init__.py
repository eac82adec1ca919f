"""A browser panel for exchanges: one self-contained page for a recording or capture, or a live view of a proxy.

``plans`` exports the plans of messages, with which the page decodes bytes. ``rows`` summarizes exchanges, ``pages``
writes pages, and ``live`` serves the exchanges of a running proxy on loopback. ``assets`` are the page's style and its
JavaScript modules, without dependencies.
"""

from kafka_msgs.viewer.live import LiveViewer
from kafka_msgs.viewer.pages import PageLimits, explain_message, explain_payload, explain_records, write_page

__all__ = ["LiveViewer", "PageLimits", "explain_message", "explain_payload", "explain_records", "write_page"]
