"""A page of HTML as it was read."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Every tag with its attributes, the answers, all that is said, and of that the prose."""

    def __init__(self, html):
        super().__init__()
        self.html, self.tags, self.answers, self.said, self.prose, self.open = (
            html,
            [],
            [],
            "",
            "",
            [],
        )
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.answers += [""] * (tag == "pre")
        if tag in {"code", "pre", "script", "style", "svg"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and tag == self.open[-1]:
            self.open.pop()

    def handle_data(self, text):
        if self.open == ["pre", "code"]:
            self.answers[-1] += text
        if not {"script", "style"} & set(self.open):
            self.said += text
        if not self.open:
            self.prose += text

    @property
    def links(self):
        return [says["href"] for tag, says in self.tags if tag == "a"]

    @property
    def loads(self):
        loading = "src", "href", "data", "srcset"
        return [says[k] for tag, says in self.tags if tag != "a" for k in loading if k in says]
