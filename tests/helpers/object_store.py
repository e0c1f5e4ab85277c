"""As much of the S3 protocol as reading needs, served from a dictionary on this machine."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


@contextmanager
def object_store(objects):
    """Serve ``objects``, bytes by ``bucket/key``; give the options that lead an address of S3 here."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self):
            self._answer(head=True)

        def do_GET(self):
            self._answer(head=False)

        def _answer(self, *, head):
            place = urlsplit(self.path)
            key = unquote(place.path).strip("/")
            asked = parse_qs(place.query)
            if "list-type" in asked:
                self._send(200, _listing(objects, key, asked.get("prefix", [""])[0]), head)
            elif key in objects:
                self._send(200, objects[key], head)
            else:
                self._send(
                    200 if any(name.startswith(f"{key}/") for name in objects) and "/" not in key else 404,
                    b"",
                    head,
                )

        def _send(self, status, content, head):
            total, wanted = len(content), self.headers.get("Range")
            if status == 200 and wanted and not head:
                first, last = (int(part) for part in wanted.removeprefix("bytes=").split("-"))
                content, status = content[first : last + 1], 206
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Last-Modified", "Mon, 02 Mar 2026 10:00:00 GMT")
            self.send_header("ETag", f'"{hash(content):x}"')
            if status == 206:
                self.send_header("Content-Range", f"bytes {first}-{last}/{total}")
            self.end_headers()
            if not head:
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _listing(objects, bucket, prefix):
    inside = {
        name.removeprefix(f"{bucket}/"): content
        for name, content in objects.items()
        if name.startswith(f"{bucket}/")
    }
    entries = "".join(
        f"<Contents><Key>{key}</Key><Size>{len(content)}</Size><LastModified>2026-03-02T10:00:00.000Z</LastModified></Contents>"
        for key, content in sorted(inside.items())
        if key.startswith(prefix)
    )
    text = (
        f"<ListBucketResult><Name>{bucket}</Name><Prefix>{prefix}</Prefix>"
        f"<IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
    )
    return text.encode()
