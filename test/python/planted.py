"""Records with secrets in every type of value and every form of text, and a search for them that shares no code with the extension.

A record stands alone, as in the column `record`: BinXML, and the template definition that it needs after it.
"""

import base64
import ipaddress
import json
import random
import struct
import urllib.parse
import uuid

STRING, ANSI, INT32, UINT32, UINT64, BINARY, GUID, SID, HEX32, HEX64 = 1, 2, 7, 8, 10, 14, 15, 19, 20, 21
FRAGMENT = b"\x0f\x01\x01\x00"
NO_DEPENDENCY = 0xFFFF


def wide(text):
    return text.encode("utf-16-le")


class Definition:
    """A template definition with a `Data` element for each value, whose names are f0, f1 and so on, or `labels`."""

    def __init__(self, types, labels=()):
        self.labels = labels
        self.out = bytearray(4 + 16 + 4)
        self.names = {}
        self.out += FRAGMENT
        self.open("Event")
        self.open("EventData")
        for index, kind in enumerate(types):
            self.data(index, kind)
        self.out += b"\x04\x04\x00"
        struct.pack_into("<I", self.out, 20, len(self.out) - 24)
        self.out[4:20] = uuid.uuid5(uuid.NAMESPACE_DNS, f"{types}{labels or ''}").bytes

    def name(self, name):
        if name in self.names:
            self.out += struct.pack("<I", self.names[name])
            return
        self.names[name] = len(self.out) + 4
        value = 0
        for unit in name.encode("ascii"):
            value = (value * 65599 + unit) & 0xFFFFFFFF
        self.out += struct.pack("<IIHH", len(self.out) + 4, 0, value & 0xFFFF, len(name)) + wide(name) + b"\0\0"

    def open(self, name):
        self.out += struct.pack("<BHI", 0x01, NO_DEPENDENCY, 0)
        self.name(name)
        self.out += b"\x02"

    def data(self, index, kind):
        self.out += struct.pack("<BHI", 0x41, NO_DEPENDENCY, 0)
        self.name("Data")
        self.out += bytes(4) + b"\x06"
        self.name("Name")
        label = self.labels[index] if self.labels else f"f{index}"
        self.out += struct.pack("<BBH", 0x05, STRING, len(label)) + wide(label)
        self.out += b"\x02" + struct.pack("<BHB", 0x0E, index, kind) + b"\x04"


def record(number, values, labels=()):
    """A record of values: types and bytes."""
    definition = Definition([kind for kind, _ in values], labels).out
    body = FRAGMENT + b"\x0c\x01" + bytes(definition[4:8])
    place = 24 + len(body)
    body += bytes(4) + struct.pack("<I", len(values))
    body += b"".join(struct.pack("<HBB", len(data), kind, 0) for kind, data in values)
    body += b"".join(data for _, data in values) + b"\0"
    size = 24 + len(body)
    out = bytearray(struct.pack("<4sIQQ", b"**\0\0", size + len(definition), number, 133_000_000_000_000_000) + body + definition)
    struct.pack_into("<I", out, place, size)
    return bytes(out)


def sid_bytes(sid):
    authority, *subs = (int(part) for part in sid.split("-")[2:])
    return bytes([1, len(subs)]) + authority.to_bytes(6, "big") + struct.pack(f"<{len(subs)}I", *subs)


def socket_address(address):
    if address.version == 4:
        return struct.pack("<HH", 2, 0x3500) + address.packed + bytes(120)
    return struct.pack("<HHI", 23, 0x3500, 0) + address.packed + bytes(100)


def texts(key):
    """The texts that spell a key, by a name of the form."""
    found = {"text": key, "upper": key.upper(), "lower": key.lower()}
    try:
        address = ipaddress.ip_address(key)
        found = {"text": key, "reverse": address.reverse_pointer}
        if address.version == 4:
            found["padded"] = ".".join(f"{byte:03}" for byte in address.packed)
            found["mapped"] = "::ffff:{:x}:{:x}".format(*struct.unpack(">HH", address.packed))
            found["number"] = str(int(address))
            found["swapped"] = str(int.from_bytes(address.packed, "little"))
        else:
            literal, mixed = key.replace(":", "-"), f"{key.rsplit(':', 2)[0]}:{ipaddress.IPv4Address(address.packed[12:])}"
            found |= {"exploded": address.exploded, "upper": address.exploded.upper(), "mixed": mixed, "translated": f"64:ff9b::{mixed.rsplit(':')[-1]}"}
            found |= {"port": f"[{key}]:443", "dot and port": f"{key}.443", "zone": f"{key}%12", "named zone": f"{key}%eth0", "prefix": f"{key}/64"}
            found |= {"literal": f"{literal}.ipv6-literal.net", "literal and zone": f"{literal}s12.ipv6-literal.net", "path": f"\\\\{literal}.ipv6-literal.net\\C$"}
            found |= {"underscores": key.replace(":", "_"), "digits": address.packed.hex()}
        return found
    except ValueError:
        pass
    if key.startswith("{"):
        return found | {"bare": key.strip("{}"), "simple": key.strip("{}").replace("-", "").upper()}
    if "\\" in key:
        domain, user = key.split("\\")
        found |= {"principal": f"{user}@{domain}", "path": f"C:\\Users\\{user}\\x", "user": user.upper()}
        return found | {"element": f"<Author>{user}</Author>", "slashes": f"C:/Users/{user}", "domain": f"{domain}\\\\{user}"}
    if "@" in key:
        user, domain = key.split("@")
        short = domain.split(".")[0]
        return found | {"account": f"{short.upper()}\\{user}", "long": f"{domain}\\{user}", "short": f"{user}@{short}"}
    if key.count(".") == 2:
        host = key.split(".")[0]
        netbios = host[:15].upper()
        return found | {"host": host, "netbios": netbios, "computer": f"{netbios}$", "service": f"TERMSRV/{netbios}", "port": f"{netbios}:443"}
    return found


def packed(key):
    """The bytes that spell a key, by a name of the form."""
    try:
        address = ipaddress.ip_address(key)
        found = {"socket": socket_address(address), "bytes": address.packed}
        if address.version == 4:
            found |= {"mapped bytes": bytes(10) + b"\xff\xff" + address.packed, "swapped bytes": address.packed[::-1]}
        return found
    except ValueError:
        pass
    if key.startswith("{"):
        guid = uuid.UUID(key)
        return {"guid": guid.bytes_le, "guid of text": guid.bytes}
    if key.startswith("S-1-"):
        return {"sid": sid_bytes(key)}
    return {"utf-8": key.encode(), "utf-16": wide(key)}


# How text encodes bytes.
ENCODED = {
    "hex": lambda data: data.hex(),
    "HEX": lambda data: data.hex().upper(),
    "spaced": lambda data: data.hex(" "),
    "colons": lambda data: data.hex(":").upper(),
    "0x": lambda data: ", ".join(f"0x{byte:02x}" for byte in data),
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64url": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
}

# How text escapes text.
ESCAPED = {
    "json": lambda text: json.dumps(text)[1:-1],
    "url": lambda text: urllib.parse.quote(text, safe=""),
    "every byte": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "xml": lambda text: "".join(f"&#x{ord(c):x};" for c in text),
}


def numbers(key):
    """The numbers that an address is, as values."""
    if ":" in key or key.count(".") != 3 or not key.replace(".", "").isdigit():
        return {}
    data = ipaddress.ip_address(key).packed
    found = {}
    for order, data in (("number", data[::-1]), ("swapped number", data)):
        found |= {f"{order} {kind}": (kind, data) for kind in (INT32, UINT32, HEX32)}
        found |= {f"{order} {kind}": (kind, data + bytes(4)) for kind in (UINT64, HEX64)}
    return found


def forms(key):
    """Every form of a key in every type of value: by name, the type, the bytes of the value, and the bytes that must not stay."""
    found = {}
    for name, text in texts(key).items():
        found[f"{name} in UTF-16"] = (STRING, wide(f"see {text}, x"), wide(text))
        if text.isascii():
            found[f"{name} in ANSI"] = (ANSI, f"see {text}, x".encode(), text.encode())
        found[f"{name} in binary"] = (BINARY, b"\x07\x01" + wide(text) + b"\x01", wide(text))
        found[f"{name} in UTF-8 in binary"] = (BINARY, b"\x07" + text.encode() + b"\x01", text.encode())
        for escape, encode in ESCAPED.items():
            if encode(text) != text:
                found[f"{name}, {escape}"] = (STRING, wide(f"q={encode(text)}&x"), wide(encode(text)))
    for name, data in packed(key).items():
        if len(data) > 4:
            found[f"{name}"] = (BINARY, b"\x07\x01" + data + b"\x01", data.rstrip(b"\0"))
        else:
            found[f"{name}"] = (BINARY, data, None)
        for encoding, encode in ENCODED.items():
            text = encode(data)
            # Base64 of a few bytes looks like any word.
            if "base64" in encoding and (len(data) < 8 and not text.endswith("=") or len(data) < 5 and "url" in encoding):
                continue
            found[f"{name}, {encoding}"] = (STRING, wide(f"<{text}>"), wide(text.rstrip("=")))
    for name, (kind, data) in numbers(key).items():
        found[name] = (kind, data, None)
        if kind == HEX32:
            found[f"{name} with another byte"] = (STRING, wide(f"RefID:0x08{data.hex()}"), wide(data.hex()))
    if key.startswith("{"):
        found["GUID"] = (GUID, uuid.UUID(key).bytes_le, uuid.UUID(key).bytes_le)
        found["GUIDs"] = (GUID | 0x80, bytes(16) + uuid.UUID(key).bytes_le, uuid.UUID(key).bytes_le)
    if key.startswith("S-1-"):
        found["SID"] = (SID, sid_bytes(key), sid_bytes(key))
        found["SIDs"] = (SID | 0x80, sid_bytes("S-1-5-18") + sid_bytes(key), sid_bytes(key))
    else:
        found["texts"] = (STRING | 0x80, wide("a\0") + wide(key + "\0"), wide(key))
    return found


# Forms that people and programs write names in, one each: {} is the name, and {upper} and {umlaut} spellings of it.
ODD = [
    "{}+Berg", "M&uuml;{}", "{}\u00a0Berg", "{}\u0308", "S_1_5_21_{}", "xn--{}-kva", "{}~1", "{upper}$", "%{}%", "<{}>", "{}\u200bx", "'{}'s",
    "\u202e{}", "{umlaut}", "-{}-", "/{}", "\\\\{}\\c$", "{}@{}.example", "file:///{}", "{};{}", "({})", "_{}_", "x86{}", "{}.exe", "C:{}",
]

# Texts in which {} is the name of an account, a machine, a domain or a share, whatever it means elsewhere.
NAMES = [
    "{}", "SRV-{}", "{}-{}", "{}.{}.intern", "{}.corp.internal", "{}.local", "{}.lan:445", "{}.fritz.box", "{}:1433", "{}$", "{}@{}", "{}@{}.example",
    "\\\\{}\\{}$\\dir", "\\\\{}.corp.internal\\{}", "\\\\?\\UNC\\{}\\{}\\x", "\\Device\\Mup\\{}\\{}", "\\\\{}@8443\\{}", "\\\\127.0.0.1\\{}", "\\\\*\\{}", "\\\\{}\\pipe\\svcctl",
    "MSSQLSvc/{}.{}.internal:1433", "MSSQLSvc/{}:{}", "HOST/{}", "cifs/{}", "HTTP/{}/{}", "TERMSRV/{}", "mailto:{}@{}.com", "http://{}:{}@{}:8080/x", "https://{}.corp/",
    "ftp://{}@{}/x", "ldap://{}:389", "file://{}/{}", "smb://{}/{}", "net user {} /add", "net use z: \\\\{}\\{} /user:{}", "psexec \\\\{} -u {}\\{}", "ping {}",
    "wmic /node:\"{}\" /user:\"{}\"", "-ComputerName {},{}", "Account Name:\t\t{}", "UserName={}", "<User>{}</User>", '{"host":"{}"}', "CN={},OU={},DC={}",
    "{}/{}", "/{}", "-{}", "mount /{}", "cd //{}/{}", "cmd /c /{}", "net use /user:{}", "net use /user:{}\\{}", "Server: {};Uid={}", "C:\\Users\\{}", "C:\\Users\\{}.{}\\x", "C:\\Documents and Settings\\{}\\x", "/home/{}/x", "D:\\{}\\{}", "{}#EXT#@{}.onmicrosoft.com",
]


def keys(seed):
    """Names, hosts, addresses, SIDs and GUIDs."""
    draw = random.Random(seed)
    word = lambda count: "".join(draw.choice("bcdfghjklmnpqrstvwxz") for _ in range(count))
    number = lambda: draw.randrange(10_000_000, 2**32)
    return [
        f"{word(5)}.{word(6)}",
        f"{word(4)}{draw.choice('éüłж')}{word(3)}",
        f"{word(6).upper()}\\{word(5)}",
        f"{word(5)}@{word(6)}.example",
        f"{word(draw.choice([7, 20]))}.{word(5)}.example",
        f"{draw.randrange(11, 223)}.{draw.randrange(11, 256)}.{draw.randrange(11, 256)}.{draw.randrange(11, 255)}",
        str(ipaddress.IPv6Address(draw.randrange(0x2001 << 112, 0x2002 << 112))),
        f"S-1-5-21-{number()}-{number()}-{number()}-{draw.randrange(1000, 9999)}",
        "{" + str(uuid.UUID(int=draw.getrandbits(128))) + "}",
    ]
