"""Makes a recording as an Intel CPU's record of calls (--call-graph lbr) would have made it, of one whose
stacks are known: of each user chain the innermost address stays, and the callers become branches."""
import struct

SAMPLE = 9
CALLCHAIN, RAW, BRANCH_STACK, COPIES = 1 << 5, 1 << 10, 1 << 11, 1 << 12 | 1 << 13
# One word each, before the chain: IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD.
BEFORE_CHAIN = 1 << 16 | 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 9 | 1 << 7 | 1 << 8
READ, ATTR_BRANCHES, ATTR_REGISTERS = 1 << 4, 72, 80
USER_CALLS = 1 << 0 | 1 << 11  # PERF_SAMPLE_BRANCH_USER | CALL_STACK
CONTEXT_USER, CONTEXTS = 2**64 - 512, 2**64 - 4095
SECTION = struct.Struct("<QQ")


def sampled_events(file):
    """{id: (sample_type, registers)} of events with chains and copies of stacks, whose attrs then say that
    they have chains and branches."""
    size, start, length = struct.unpack_from("<QQQ", file, 16)
    types = {}
    for at in range(start, start + length, size):
        kind = struct.unpack_from("<Q", file, at + 24)[0]
        if not kind & CALLCHAIN:
            continue
        registers = bin(struct.unpack_from("<Q", file, at + ATTR_REGISTERS)[0]).count("1")
        assert kind & COPIES == COPIES, "they were not recorded with --call-graph dwarf"
        assert not kind & (READ | RAW | BRANCH_STACK), "a word list of another kind lies between"
        struct.pack_into("<Q", file, at + 24, (kind | BRANCH_STACK) & ~COPIES)
        struct.pack_into("<QQI", file, at + ATTR_BRANCHES, USER_CALLS, 0, 0)
        ids, count = SECTION.unpack_from(file, at + size - SECTION.size)
        types.update((number, (kind, registers)) for (number,) in struct.iter_unpack("<Q", file[ids : ids + count]))
    return types


def behind_copies(record, at, registers):
    """Where what follows the registers and the copy of the stack lies."""
    at += 8 + (8 * registers if struct.unpack_from("<Q", record, at)[0] else 0)
    size = struct.unpack_from("<Q", record, at)[0]
    return at + 8 + (size + 8 if size else 0)


def rewritten(record, kind, registers, most):
    at = 8 + 8 * bin(kind & BEFORE_CHAIN).count("1")
    count = struct.unpack_from("<Q", record, at)[0]
    chain = list(struct.unpack_from(f"<{count}Q", record, at + 8))
    rest = record[behind_copies(record, at + 8 + 8 * count, registers) :]
    begin = chain.index(CONTEXT_USER) + 2 if CONTEXT_USER in chain else len(chain)
    inner, callers = chain[:begin], chain[begin:]
    assert all(word < CONTEXTS for word in callers)
    # From the call, which lies before the address that it returns to, into the function within.
    branches = [(caller - 1, within, 0) for caller, within in zip(callers, chain[begin - 1 :])][:most]
    body = struct.pack(f"<{1 + len(inner)}Q", len(inner), *inner) + struct.pack("<Q", len(branches))
    body = record[8:at] + body + b"".join(struct.pack("<3Q", *branch) for branch in branches) + rest
    return record[:6] + struct.pack("<H", 8 + len(body)) + body


def as_branches(source, target, most):
    """The file with at most so many calls a sample, as the CPU remembers. It is to be uncompressed."""
    file = bytearray(source.read_bytes())
    types = sampled_events(file)
    start, length = SECTION.unpack_from(file, 40)
    data, at = bytearray(), start
    while at < start + length:
        number, _, size = struct.unpack_from("<IHH", file, at)
        record = bytes(file[at : at + size])
        event = types.get(struct.unpack_from("<Q", record, 8)[0]) if number == SAMPLE else None
        data += rewritten(record, *event, most) if event else record
        at += size
    # The table of feature sections follows the data and tells where each begins.
    features = file[start + length :]
    for n in range(sum(bin(word).count("1") for word in struct.unpack_from("<4Q", file, 72))):
        offset, size = SECTION.unpack_from(features, 16 * n)
        SECTION.pack_into(features, 16 * n, offset + len(data) - length, size)
    SECTION.pack_into(file, 40, start, len(data))
    target.write_bytes(bytes(file[:start]) + bytes(data) + bytes(features))
