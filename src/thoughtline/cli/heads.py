"""Requests whose head is too large, refused while they come in.

uvicorn's fast protocol takes a head of any size. Here its bytes are counted: those of a head that
does not end as they arrive, and those of its fields when it is complete.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REFUSAL = b'{"error":{"message":"%s","type":"invalid_request_error","code":"head_too_large"}}'


class Bounded(HttpToolsProtocol):
    """Answers 431 to a head of more bytes than uvicorn's other protocol would take."""

    _heading = False  # a head has begun, and not ended
    _come = 0  # bytes of it in pieces after the first
    _size = 0  # bytes of its fields
    _refused = False

    @property
    def limit(self) -> int:
        """The largest head, in bytes."""
        return self.config.h11_max_incomplete_event_size or 64 << 10

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._heading:
            self._come += len(data)
            if self._come > self.limit:
                self._refuse()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._heading, self._come, self._size = True, 0, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value) + 4
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._heading = False
        if self._size + len(self.url) > self.limit:
            self._refused = True
            raise ValueError("the head is too large")  # the parser stops, and a 400 is made
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if self._refused:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _refuse(self) -> None:
        self._refused = True
        said = (
            f"the head of the request is larger than {self.limit} bytes; send fewer or shorter "
            "headers, or raise `server.max_header_bytes`"
        )
        body = REFUSAL % said.encode()
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
            b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        )
        self.transport.close()
