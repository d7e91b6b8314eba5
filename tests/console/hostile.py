"""Text that would act in the page, if the page let it."""

from tests.console.browsing import Tab

TABLE = "|" + "c|" * 200 + "\n|" + "-|" * 200 + "\n" + ("|" + "cell |" * 200 + "\n") * 50
HOSTILE = f"""<script>document.title = "taken"</script><img src=x onerror="document.title = 'taken'">

[run](javascript:document.title='taken') [run](JaVaScRiPt&#58;document.title='taken')
[run](data:text/html,<script>1</script>)
[file](file:///etc/passwd) [other](//other.example/x) <javascript:document.title='taken'> [r]

[r]: javascript:document.title='taken'

![tracked](http://other.example/pixel.png) ![data](data:image/svg+xml;base64,PHN2Zz4=)

[honest](https://example.org/a?b=c) \u202eelttil a si siht\u202c \ue0000\ue001

<iframe src="http://other.example"></iframe><style>body {{ display: none }}</style><form action="http://other.example"><button>send</button></form>

{"> " * 300}deep

{TABLE}
```html
<script>document.title = "taken"</script>
```
"""


async def nothing_happened(tab: Tab) -> None:
    """Check that the page holds none of it as elements, and that no link leads where none may."""
    assert await tab.page.title() == "Ballast"
    assert (
        await tab.page.locator("#app").locator("script, img, iframe, form[action], style, object, embed").count() == 0
    )
    addresses: list[str] = await tab.page.evaluate("[...document.links].map(link => link.href)")
    assert all(address.startswith((tab.running.url, "https://example.org/")) for address in addresses), addresses
    assert "\u202e" not in await tab.page.locator("#app").inner_text()
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
