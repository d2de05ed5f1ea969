"""One side of the conversation: requests and answers strictly nested over one channel, the same code on both sides.

While a side waits for its answer it serves what the other asks meanwhile (a callback). The lock is held whenever the
channel is used and let go while somebody's code runs, so threads of the check and of the candidate take turns.
"""

from __future__ import annotations

import _thread

from .changes import apply_changes, changed, snapshot
from .codec import Decoder, Encoder, Garbled, Uncrossable
from .wire import Channel, Lost, TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

# Each level costs some ten frames here; more is refused before anything was sent.
_DEPTH = 60


class Peer:
    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.lock = _thread.allocate_lock()
        self._sequence = 0
        self._depth = 0
        self._answers: Dict[int, list] = {}
        # What text that goes there or comes here is to be: paths of the two sides' folders.
        self.led_there: Any = None
        self.led_here: Any = None
        # Counts what may have changed the other side's state: whoever remembers something compares it.
        self.epoch = 0

    # What the two sides do differently.
    def opaque(self, encoder: Encoder, value: Any) -> Any:
        raise NotImplementedError

    def arrive(self, decoder: Decoder, node: list) -> Any:
        raise NotImplementedError

    def perform(self, operation: str, values: List[Any]) -> Any:
        raise NotImplementedError

    def exception_node(self, encoder: Encoder, error: BaseException) -> Any:
        raise NotImplementedError

    def refuse(self, text: str) -> BaseException:
        raise NotImplementedError

    def going(self, values: Any) -> None:
        """Told of the values of a request before it is made."""

    def attach(self) -> Any:
        """What goes along with a message of this side; None for nothing."""
        return None

    def raising(self, error: BaseException) -> None:
        """Told of what the other side raised, before it is raised here."""

    def sent(self, arrived: bool) -> None:
        """Told after each message whether it went out or could not be made."""

    def attached(self, extra: Any) -> None:
        """What came along with a message of the other side."""

    def broken(self, why: str) -> None:
        """Called once the channel cannot be used any more; the judge does not come back from it."""
        raise Lost(why)

    def request(self, operation: str, *values: Any) -> Any:
        if self._depth >= _DEPTH:
            raise RecursionError("calls between the check and the candidate's code nest deeper than %d" % _DEPTH)
        seen: List[Any] = []
        self.lock.acquire()
        self._depth += 1
        try:
            answer = self._exchange(operation, values, seen)
        except Lost as lost:
            self.broken(str(lost))
            raise
        finally:
            self._depth -= 1
            self.lock.release()
        return self._settle(answer, seen)

    def _exchange(self, operation: str, values: Tuple[Any, ...], seen: List[Any]) -> list:
        encoder = Encoder(seen, self.opaque, self.led_there)
        self.going(values)
        try:
            nodes = [encoder.encode(value) for value in values]
        except (Uncrossable, RecursionError) as error:
            self.sent(False)
            raise self.refuse(_reason(error)) from None
        self._sequence += 1
        sequence = self._sequence
        self.epoch += 1
        try:
            self.channel.send(["q", sequence, operation, nodes, self.attach()])
            self.sent(True)
        except TooLarge as error:
            self.sent(False)
            raise self.refuse(str(error)) from None
        while sequence not in self._answers:
            self._next()
        return self._answers.pop(sequence)

    def _next(self) -> None:
        """Reads one message and does with it what it asks for. The lock is held."""
        message = self.channel.receive()
        kind, sequence = message[0], message[1]
        if kind == "q" and len(message) == 5:
            self._serve(message)
        elif kind == "a" and len(message) == 6 and type(sequence) is int:
            if not 0 < sequence <= self._sequence or sequence in self._answers:
                raise Lost("an answer to nothing that was asked")
            self._answers[sequence] = message
        elif kind == "o" and len(message) == 3:
            self.attached(message[2])
        else:
            raise Lost("garbage on the channel")

    def _serve(self, message: list) -> None:
        _, sequence, operation, nodes, extra = message
        if type(sequence) is not int or type(operation) is not str or type(nodes) is not list:
            raise Lost("garbage on the channel")
        seen: List[Any] = []
        error: Optional[BaseException] = None
        result: Any = None
        before: list = []
        self.epoch += 1
        self.lock.release()
        try:
            try:
                self.attached(extra)
                values = self.decoded(Decoder(seen, self.arrive, self.led_here), nodes)
                before = snapshot(seen)
                result = self.perform(operation, values)
            except Lost:
                raise
            except BaseException as raised:  # noqa: B902 - whatever the code raises goes to who called it
                error = raised
        finally:
            self.lock.acquire()
        self._answer(sequence, seen, before, result, error)

    def decoded(self, decoder: Decoder, nodes: list) -> List[Any]:
        try:
            return [decoder.decode(node) for node in nodes]
        except Lost:
            raise
        except Exception as error:
            self.broken("garbage on the channel (%s)" % type(error).__name__)
            raise Lost("garbage") from error

    def _answer(
        self, sequence: int, seen: List[Any], before: list, result: Any, error: Optional[BaseException]
    ) -> None:
        count = len(seen)
        try:
            encoder = Encoder(seen, self.opaque, self.led_there)
            if error is None:
                outcome, node = "ok", encoder.encode(result)
            else:
                outcome, node = "raised", self.exception_node(encoder, error)
            updates = [[number, encoder.encode(value)] for number, value in changed(before)]
            self.channel.send(["a", sequence, outcome, node, updates, self.attach()])
            self.sent(True)
            return
        except (Uncrossable, TooLarge, RecursionError, MemoryError) as failure:
            reason = _reason(failure)
        self.sent(False)
        del seen[count:]
        self.channel.send(["a", sequence, "no", reason, [], self.attach()])

    def _settle(self, answer: list, seen: List[Any]) -> Any:
        _, _, outcome, node, updates, extra = answer
        self.attached(extra)
        if outcome == "no":
            raise self.refuse(node if type(node) is str else "a value that cannot cross")
        if outcome not in ("ok", "raised") or type(updates) is not list:
            self.broken("garbage on the channel")
        decoder = Decoder(seen, self.arrive, self.led_here)
        known = len(seen)
        result = self.decoded(decoder, [node])[0]
        try:
            for number, update in updates:
                if type(number) is not int or not 0 <= number < known:
                    raise Garbled("an update of nothing")
                apply_changes(seen[number], decoder.decode(update))
        except Lost:
            raise
        except Exception as error:
            self.broken("garbage on the channel (%s)" % type(error).__name__)
        if outcome == "ok":
            return result
        if not isinstance(result, BaseException):
            self.broken("garbage on the channel")
        self.raising(result)
        raise result


def _reason(error: BaseException) -> str:
    if isinstance(error, (Uncrossable, TooLarge)):
        return str(error)
    return "a value nested too deep, or too large" if isinstance(error, (RecursionError, MemoryError)) else "a value"
