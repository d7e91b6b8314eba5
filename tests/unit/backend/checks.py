"""What the check of the backend says of its parts."""

from backend.check import check_parts
from shared.checked_parts import CheckedPart

NEEDED = {"BACKEND_SECRET": "secret-of-the-tests", "SERVICE_TOKEN": "token-of-the-tests"}


async def parts_of(environ: dict[str, str]) -> dict[str, CheckedPart]:
    return {part.part: part async for part in check_parts(environ)}
