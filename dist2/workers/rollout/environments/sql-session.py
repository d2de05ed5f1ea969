# One step of an SQL task, rebuilt from nothing: schema, seed, the episode's earlier queries, then the new one.
# Trusted text of the farm's own. On stdin a line of byte counts, then as many texts in UTF-16: schema, seed, the new
# query, the earlier ones. On stdout one JSON document, as json.dumps writes it; a mark on stderr says how far it came,
# so that whoever killed it knows whose fault that was. Only modules of the interpreter's own in C are imported: the
# packages above them take longer to load than most queries run.
import sys

import _codecs
import _json
import _sqlite3


def texts():
    sizes = sys.stdin.buffer.readline().split()
    for size in sizes:
        yield _codecs.utf_16_le_decode(sys.stdin.buffer.read(int(size)), "surrogatepass", True)[0]


def dumped(value):
    if value is None:
        return "null"
    if type(value) is str:
        return _json.encode_basestring_ascii(value)
    if type(value) is int:
        return repr(value)
    if type(value) is float:
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value))
    if type(value) is list:
        return "[" + ", ".join([dumped(item) for item in value]) + "]"
    raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)


def answer(key, value):
    document = '{"%s": %s}' % (key, dumped(value))
    sys.stdout.write(document)
    sys.stdout.flush()


def mark(word):
    sys.stderr.write(word + "\n")
    sys.stderr.flush()


def main():
    schema, seed, query, *earlier = texts()
    connection = _sqlite3.connect(":memory:")
    try:
        connection.executescript(schema)
        connection.executescript(seed)
    except Exception as fault:
        answer("setup", str(fault))
        return
    mark("ready")
    for one in earlier:
        try:
            for _ in connection.execute(one):
                pass
        except Exception:
            pass
    mark("earlier")
    try:
        rows = [list(row) for row in connection.execute(query).fetchall()]
    except _sqlite3.Error as fault:
        answer("error", str(fault))
        return
    except Exception as fault:
        answer("raised", str(fault) or type(fault).__name__)
        return
    try:
        answer("rows", rows)
    except Exception as fault:
        answer("raised", str(fault) or type(fault).__name__)


main()
