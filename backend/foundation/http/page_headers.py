"""The headers of what a person sees in a browser."""

from collections.abc import Mapping

_POLICY: Mapping[str, str] = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": "; ".join(f"{what} {allowed}" for what, allowed in _POLICY.items()),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""Nothing from elsewhere, no script or style in the page itself, and no text that becomes HTML.

Without a policy of trusted types the browser refuses `innerHTML` and what is like it, whoever calls it.
"""
