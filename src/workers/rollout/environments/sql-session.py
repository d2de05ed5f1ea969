# One step of an SQL task, rebuilt from nothing: schema, seed, the episode's earlier queries, then the new one.
# Trusted text of the farm's own: it reads one JSON document from stdin and prints one to stdout. A mark on stderr
# says how far it came, so that whoever killed it knows whose fault that was.
import json
import sqlite3
import sys


def answer(document):
    sys.stdout.write(json.dumps(document))
    sys.stdout.flush()


def mark(word):
    sys.stderr.write(word + "\n")
    sys.stderr.flush()


def main():
    work = json.loads(sys.stdin.buffer.read())
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(work["schema"])
        connection.executescript(work["seed"])
    except Exception as fault:
        answer({"setup": str(fault)})
        return
    mark("ready")
    for query in work["earlier"]:
        try:
            for _ in connection.execute(query):
                pass
        except Exception:
            pass
    mark("earlier")
    try:
        rows = [list(row) for row in connection.execute(work["query"]).fetchall()]
    except sqlite3.Error as fault:
        answer({"error": str(fault)})
        return
    except Exception as fault:
        answer({"raised": str(fault) or type(fault).__name__})
        return
    try:
        document = json.dumps({"rows": rows})
    except Exception as fault:
        answer({"raised": str(fault) or type(fault).__name__})
        return
    sys.stdout.write(document)


main()
