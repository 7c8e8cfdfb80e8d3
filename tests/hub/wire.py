"""HTTP/1.1 on a socket, one thread per connection, with control over every byte: a server that can also send wrong data,
stall and drop connections, unlike Python's own. It has only what download tests need."""
import json
import os
import socket
import ssl
import threading
import time
import urllib.parse

REASONS = {200: "OK", 206: "Partial Content", 301: "Moved Permanently", 302: "Found", 307: "Temporary Redirect",
           308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
           405: "Method Not Allowed", 408: "Request Timeout", 416: "Range Not Satisfiable", 429: "Too Many Requests",
           500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}
CHUNK = 1 << 20


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.raw_path, _, self.raw_query = target.partition("?")
        self.path = urllib.parse.unquote(self.raw_path, errors="surrogateescape")
        self.query = urllib.parse.parse_qs(self.raw_query, keep_blank_values=True)
        self.time, self.clock = time.monotonic(), time.time()
        self.status = None
        self.sent = 0     # bytes of the response body
        self.content = 0  # bytes of files among those sent

    def one(self, name, default=None):
        return self.query.get(name, [default])[0]


class Answer:
    """Status and headers; the body is bytes, or a file path with a range."""

    def __init__(self, status=200, headers=(), body=b"", file=None, begin=0, length=None):
        self.status, self.headers, self.body, self.file = status, dict(headers), body, file
        self.begin = begin
        self.length = length if length is not None else len(body)


def json_answer(value, status=200, headers=()):
    body = json.dumps(value).encode()
    return Answer(status, {"Content-Type": "application/json; charset=utf-8", **dict(headers)}, body)


class BrokenOff(Exception):
    """Closes the connection at once."""


class Listener:
    """Accepts connections on a free port and responds with handle(request) -> Answer."""

    def __init__(self, name, handle, address="127.0.0.1", tls=None, log=None):
        self.name, self.handle, self.tls = name, handle, tls
        self.log = log if log is not None else []
        self.socket = socket.create_server((address, 0), backlog=256)
        self.address, self.port = self.socket.getsockname()[:2]
        self.closed = False
        self.connections = set()
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://{self.address}:{self.port}"

    def accept(self):
        while not self.closed:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with self.lock:
            self.connections.add(connection)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            while (request := self.read(connection)) and not self.closed:
                self.log.append(request)
                answer = self.handle(request)
                request.status = answer.status
                self.write(connection, request, answer)
        except (OSError, ssl.SSLError, BrokenOff, ValueError):
            pass
        finally:
            with self.lock:
                self.connections.discard(connection)
            connection.close()

    @staticmethod
    def read(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more or len(data) > 1 << 20:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        if target.startswith("http"):  # a request to a proxy
            parts = urllib.parse.urlsplit(target)
            target = parts.path + ("?" + parts.query if parts.query else "")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65536)
        return Request(method, target, headers, body)

    def write(self, connection, request, answer):
        headers = {"Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()), "Connection": "keep-alive",
                   "Content-Length": str(answer.length), **answer.headers}
        head = f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Unknown')}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value is not None)
        connection.sendall(head.encode("latin-1", errors="replace") + b"\r\n")
        if request.method == "HEAD":
            return
        trouble = getattr(answer, "trouble", None)
        body = Body(connection, request, answer, trouble)
        body.send()
        if headers["Content-Length"] is None or (trouble and trouble.closes):
            raise BrokenOff

    def close(self):
        self.closed = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Body:
    """Sends the body of one response: whole files with sendfile, which is faster than hashing; with a fault, altered."""

    def __init__(self, connection, request, answer, trouble):
        self.connection, self.request, self.answer, self.trouble = connection, request, answer, trouble
        self.watch = getattr(answer, "watch", None)

    def send(self):
        if self.answer.file is None:
            self.slowly(self.answer.body)
            return
        with open(self.answer.file, "rb") as file:
            if self.trouble or isinstance(self.connection, ssl.SSLSocket):
                self.slowly(None, file)
            else:
                self.quickly(file)

    def quickly(self, file):
        at, end = self.answer.begin, self.answer.begin + self.answer.length
        while at < end:
            step = min(4 * CHUNK, end - at)
            if self.watch:
                step = self.watch.step(step)
            done = os.sendfile(self.connection.fileno(), file.fileno(), at, step)
            if done == 0:
                raise BrokenOff  # the file has become shorter
            at += done
            self.count(done)

    def slowly(self, data, file=None):
        at, end = self.answer.begin, self.answer.begin + self.answer.length
        while at < end:
            step = min(CHUNK, end - at)
            if self.trouble:
                step = self.trouble.before(self.request.sent, step)
            if self.watch:
                step = self.watch.step(step)
            piece = data[at:at + step] if data is not None else os.pread(file.fileno(), step, at)
            if self.trouble:
                piece = self.trouble.changed(at, piece)
            self.connection.sendall(piece)
            at += len(piece)
            self.count(len(piece))
            if not piece:
                raise BrokenOff

    def count(self, done):
        self.request.sent += done
        self.request.content += done if self.answer.file is not None else 0
        if self.watch:
            self.watch.add(done)
