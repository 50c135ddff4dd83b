"""Makes a long recording of a short one: its samples again and again, each time later.

    python3 replicate.py IN OUT TIMES

IN is an uncompressed perf.data. Side-band records are not repeated, and no
process ends. With user registers among them, replicate(vary=True) changes one in each repeated sample:
equal samples are looked up, which those of a true recording cannot be.
"""
import struct
import sys

SAMPLE, FINISHED_ROUND, EXIT = 9, 68, 4
IP, TID, TIME, IDENTIFIER = 1 << 0, 1 << 1, 1 << 2, 1 << 16
CALLCHAIN, REGS_USER = 1 << 5, 1 << 12
# One word each, before the chain: IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD.
BEFORE_CHAIN = 1 << 16 | 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 9 | 1 << 7 | 1 << 8
BETWEEN = 1 << 4 | 1 << 10 | 1 << 11 # READ, RAW, BRANCH_STACK: of many words
SECTION = struct.Struct("<QQ")


def time_offsets(file):
    """{id of an event: where in its sample records the time lies}; one event alone has the id None."""
    attr_size, attrs_at, attrs_len = struct.unpack_from("<QQQ", file, 16)
    offsets = {}
    for at in range(attrs_at, attrs_at + attrs_len, attr_size):
        sample_type = struct.unpack_from("<Q", file, at + 24)[0]
        offset = 8 + 8 * bin(sample_type & (IDENTIFIER | IP | TID)).count("1")
        if not sample_type & TIME:
            raise SystemExit("replicate: samples have no times")
        if attrs_len == attr_size and not sample_type & IDENTIFIER:
            return {None: offset}
        if not sample_type & IDENTIFIER:
            raise SystemExit("replicate: several events, and samples do not begin with their id")
        ids_at, ids_len = SECTION.unpack_from(file, at + attr_size - SECTION.size)
        for (number,) in struct.iter_unpack("<Q", file[ids_at : ids_at + ids_len]):
            offsets[number] = offset
    return offsets


def register_at(record, sample_type):
    """Where the first user register lies: on x86-64 ax, which no caller expects to be kept."""
    if not sample_type & REGS_USER or sample_type & BETWEEN:
        return None
    at = 8 + 8 * bin(sample_type & BEFORE_CHAIN).count("1")
    if sample_type & CALLCHAIN:
        at += 8 + 8 * struct.unpack_from("<Q", record, at)[0]
    return at + 8 if struct.unpack_from("<Q", record, at)[0] else None


def split(file, start, end, offsets):
    """The records of the first copy, those of the others, and where the times of these are and the
    registers of the first event's."""
    first, repeated, times, registers = bytearray(), bytearray(), [], []
    sample_type = struct.unpack_from("<Q", file, struct.unpack_from("<Q", file, 24)[0] + 24)[0]
    at = start
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", file, at)
        if size < 8 or at + size > end:
            raise SystemExit(f"replicate: a broken record at {at}")
        record = file[at : at + size]
        if kind == SAMPLE:
            offset = offsets[None] if None in offsets else offsets[struct.unpack_from("<Q", record, 8)[0]]
            times.append(len(repeated) + offset)
            register = register_at(record, sample_type)
            if register:
                registers.append(len(repeated) + register)
        if kind in (SAMPLE, FINISHED_ROUND):
            repeated += record
        if kind != EXIT:
            first += record
        at += size
    return first, repeated, times, registers


def replicate(source, target, copies, vary=False):
    with open(source, "rb") as stream:
        file = stream.read()
    if file[:8] != b"PERFILE2":
        raise SystemExit("replicate: this is no perf.data in file mode")
    start, length = SECTION.unpack_from(file, 40)
    end = start + length
    first, repeated, times, registers = split(file, start, end, time_offsets(file))
    moments = [struct.unpack_from("<Q", repeated, at)[0] for at in times]
    span = max(moments) - min(moments) + 1_000_000
    put = struct.Struct("<Q").pack_into
    with open(target, "wb") as out:
        out.write(file[:start])
        out.write(first)
        for copy in range(1, copies):
            for at, moment in zip(times, moments):
                put(repeated, at, moment + copy * span)
            for at in registers if vary else ():
                put(repeated, at, copy)
            out.write(repeated)
        grown = out.tell() - start - length
        # The table of feature sections follows the data and tells where each begins.
        features = bytearray(file[end:])
        count = sum(bin(word).count("1") for word in struct.unpack_from("<4Q", file, 72))
        for n in range(count):
            offset, size = SECTION.unpack_from(features, 16 * n)
            SECTION.pack_into(features, 16 * n, offset + grown, size)
        out.write(features)
        out.seek(40)
        out.write(SECTION.pack(start, length + grown))


if __name__ == "__main__":
    replicate(sys.argv[1], sys.argv[2], int(sys.argv[3]))
