"""Names of machines, and the addresses in fields."""

import ipaddress
import re


def without_mapping(address):
    return address[7:] if address and address.lower().startswith("::ffff:") else address


HERE = {"localhost", "127.0.0.1", "::1"}


def without_slashes(name):
    return (name or "").lstrip("\\") or None


def own_names(computer):
    short = (computer or "").split(".")[0].lower()
    return {(computer or "").lower(), short, short[:15]}


def is_name_of_windows(name, sid, computer):
    """Whether Windows calls one of its own SIDs by the name of the computer, or by a name in its language."""
    domain, _, account = (name or "").rpartition("\\")
    is_own = account.endswith("$")
    return re.fullmatch(r"S-1-5-\d+", sid or "") and (is_own or re.search(r"\bNT\b", domain))


def host_in_words(host):
    """The other machine in an address or a name that Windows or a service wrote."""
    return host_of(host or "", None, False) or None


def host_in(address):
    """An address, and not LOCAL in the language of Windows."""
    return host_in_words(address) if re.search("[0-9.:]", address or "") else None


def host_of(host, computer, claimed):
    """An address or a name in one form; None for this machine, and "" for values that name no machine."""
    host = host.lstrip("\\")
    if not claimed:
        host = re.sub(r"^(?:\?\??|\.)\\UNC\\", "", host).split("\\")[0]
        host = re.sub(r"@(?:SSL(?:@\d*)?|ssl|\d*)$", "", host).removesuffix(".")
        if host in ("*", "?", "??") or re.fullmatch(r".:", host):
            return ""
        if found := re.fullmatch(r"\[([^\]]*)\](?::\d+)?|([^:]*):\d+", host):
            host = found[1] or found[2]
        host = without_mapping(host)
        if found := re.fullmatch(r"([^:]*):\d+", host):
            host = found[1]
    computer = (computer or "").lower()
    short = computer.split(".")[0]
    if host.lower() in ("", "-", "null") or host.startswith("<") or is_address(host) and ipaddress.ip_address(host.split("%")[0]).is_unspecified:
        return ""
    is_loopback = is_address(host) and ipaddress.ip_address(host.split("%")[0]).is_loopback
    return None if is_loopback or host.lower().rstrip(".") in ("localhost", "local", computer.rstrip("."), short, short[:15]) or host.lower().startswith("localhost (") else host


def is_address(host):
    try:
        return bool(ipaddress.ip_address(host.split("%")[0]))
    except ValueError:
        return False
