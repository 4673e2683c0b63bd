#!/usr/bin/env python3
"""Random V4A patches, many of them wrong, applied by us and by a plain model.

The model knows the format's exact rules only: sections in order, anchors one behind the other, the
first place at which a hunk's old lines stand behind the hunk before it. What must hold: where the
model has an answer, ours is the same bytes and says "exact"; where it has none, ours refuses and
changes nothing, or says "fuzzy".

usage: test_v4a.py DRIVER [--rounds N] [--seed N]
"""
import argparse
import pathlib
import random
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import support  # noqa: E402

WORDS = ["a", "b", "c", "  a", "x = 1", "}", "", "f()", "caf\u00e9"]
NAMES = ["f", "g", "d/h", "d/e/i", "n/new", "n/other"]


class Refused(Exception):
    pass


def find(lines, run, start):
    for at in range(start, len(lines) - len(run) + 1):
        if lines[at:at + len(run)] == run:
            return at
    raise Refused


def find_anchor(lines, anchor, start):
    """Anchors are written with or without their indentation."""
    for same in (lambda x: x, lambda x: x.rstrip(" "), lambda x: x.strip(" ")):
        for at in range(start, len(lines)):
            if same(lines[at]) == same(anchor):
                return at
    raise Refused


def model_update(content, hunks):
    final = content.endswith("\n") or content == ""
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    out, at = [], 0
    for anchors, body, at_end in hunks:
        old = [text for op, text in body if op != "+"]
        behind = at
        for anchor in anchors:
            behind = find_anchor(lines, anchor, behind) + 1
        if at_end:
            place = len(lines) - len(old)
            if place < behind or lines[place:] != old:
                raise Refused
        elif not old:
            place = behind if anchors else len(lines)
        else:
            try:
                place = find(lines, old, behind)
            except Refused:
                if not anchors:
                    raise
                place = find(lines, old, behind - 1)
        out += [(text, i) for i, text in enumerate(lines[at:place], at)]
        i = place
        for op, text in body:
            if op != "-":
                out.append((text, None if op == "+" else i))
            i += op != "+"
        at = i
    out += [(text, i) for i, text in enumerate(lines[at:], at)]
    if not out:
        return ""
    # The end stays as it was: a line that was in the middle keeps its ending, an inserted one takes
    # over what the file's end was like.
    last = out[-1][1]
    open_end = not final and (last is None or last == len(lines) - 1)
    return "\n".join(text for text, _ in out) + ("" if open_end else "\n")


def model(tree, sections):
    tree = dict(tree)
    for kind, name, move, body in sections:
        if kind == "add":
            if name in tree:
                raise Refused
            tree[name] = "".join(line + "\n" for line in body)
            continue
        if name not in tree:
            raise Refused
        if kind == "delete":
            del tree[name]
            continue
        content = model_update(tree[name], body)
        if move and move != name:
            if move in tree:
                raise Refused
            del tree[name]
        tree[move or name] = content
    return tree


def random_lines(rng, most=25):
    unique = rng.random() < 0.6
    return [rng.choice(WORDS) + (f" {i}" if unique else "") for i in range(rng.randrange(most))]


def random_hunks(rng, content):
    lines = content.split("\n")[:-1] if content.endswith("\n") else content.split("\n")
    hunks, at = [], 0
    for _ in range(rng.randrange(1, 4)):
        if at >= len(lines):
            break
        start = rng.randrange(at, len(lines))
        end = min(len(lines), start + rng.randrange(1, 6))
        anchors = []
        if start > at and rng.random() < 0.3:
            anchors = [lines[rng.randrange(at, start)]]
            if not anchors[0].strip():
                anchors = []
        body = []
        for text in lines[start:end]:
            op = rng.choice("  -")
            body.append((op, text))
            if rng.random() < 0.3:
                body.append(("+", rng.choice(WORDS) + " +"))
        if rng.random() < 0.12:  # wrong
            i = rng.randrange(len(body))
            body[i] = (body[i][0], body[i][1] + rng.choice(["z", " "]))
        hunks.append((anchors, body, end == len(lines) and rng.random() < 0.3))
        at = end
    if rng.random() < 0.05:
        rng.shuffle(hunks)
    return hunks or [([], [("+", "appended")], False)]


def random_sections(rng, tree):
    sections = []
    for _ in range(rng.randrange(1, 5)):
        kind = rng.choice(["update"] * 5 + ["add", "delete", "move"])
        name = rng.choice(sorted(tree)) if tree and rng.random() < 0.95 else rng.choice(NAMES)
        if kind == "add":
            name = rng.choice(NAMES) if rng.random() < 0.9 else name
            sections.append(("add", name, None, random_lines(rng)))
        elif kind == "delete":
            sections.append(("delete", name, None, None))
        else:
            move = rng.choice(NAMES) if kind == "move" else None
            hunks = random_hunks(rng, tree.get(name, "a\n"))
            sections.append(("update", name, move, hunks))
    return sections


def write_patch(sections):
    out = ["*** Begin Patch"]
    for kind, name, move, body in sections:
        out.append({"add": "*** Add File: ", "delete": "*** Delete File: ",
                    "update": "*** Update File: "}[kind] + name)
        if move:
            out.append("*** Move to: " + move)
        if kind == "add":
            out += ["+" + line for line in body]
        if kind == "update":
            for anchors, lines, at_end in body:
                out += ["@@ " + anchor for anchor in anchors] or ["@@"]
                out += [op + text for op, text in lines]
                out += ["*** End of File"] if at_end else []
    return "\n".join(out + ["*** End Patch", ""])


def run_round(driver, work, seed):
    rng = random.Random(seed)
    tree = {}
    for name in rng.sample(NAMES[:4], rng.randrange(1, 5)):
        content = "".join(line + "\n" for line in random_lines(rng))
        if content.strip("\n") and rng.random() < 0.2:
            content = content.rstrip("\n")
        tree[name] = content
    sections = random_sections(rng, tree)
    patch = work / "patch"
    patch.write_bytes(write_patch(sections).encode())
    support.write_tree(work / "ours", {n: (c.encode(), False) for n, c in tree.items()})
    try:
        want = model(tree, sections)
    except Refused:
        want = None
    status, fuzzy, message = driver.apply(work / "ours", patch, "v")
    have = {n: c.decode() for n, (c, _) in support.read_tree(work / "ours").items()}
    def fail(why):
        raise AssertionError(f"seed {seed}: {why}: {status} {fuzzy} {message}\n"
                             f"{write_patch(sections)}\nbefore {tree}\nhave {have}\nwant {want}")
    if status != "applied":
        if have != tree:
            fail("refused, but changed")
        if want is not None:
            fail("the model applies it")
        return "refused"
    if want is None:
        if fuzzy != "fuzzy":
            fail("the model refuses it")
        return "fuzzy"
    if have != want or fuzzy != "exact":
        fail("not what the model makes")
    return "exact"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    driver = support.Driver(args.driver)
    work = support.scratch()
    counts = {}
    try:
        for i in range(args.rounds):
            outcome = run_round(driver, work, args.seed + i)
            counts[outcome] = counts.get(outcome, 0) + 1
    finally:
        shutil.rmtree(work)
    if driver.close() != 0:
        raise AssertionError("the driver failed")
    print(counts)
    if args.rounds >= 1000 and min(counts.get(k, 0) for k in ("exact", "fuzzy", "refused")) == 0:
        raise AssertionError("some kind of round never came: the comparison shows nothing")


if __name__ == "__main__":
    main()
