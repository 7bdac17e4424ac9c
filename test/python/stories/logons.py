"""Who logs on, from where, and in which way; and who tries to."""

import dataclasses

from stories.facts import Fact
from stories.world import CLAIMS, CONNECTIONS, GATEWAY, ITSELF, NOBODY, PRIVILEGES, RDP_CORE, SECURITY, SESSIONS, SSH, Account, Any, Machine, OneOf, seconds, subject

# Status and SubStatus of 4625, and the name of the reason: MS-ERREF.
REASONS = {
    "wrong password": ("0xc000006d", "0xc000006a", "%%2313", "STATUS_WRONG_PASSWORD"), "unknown user": ("0xc000006d", "0xc0000064", "%%2313", "STATUS_NO_SUCH_USER"),
    "disabled": ("0xc000006e", "0xc0000072", "%%2310", "STATUS_ACCOUNT_DISABLED"), "expired": ("0xc000006e", "0xc0000193", "%%2305", "STATUS_ACCOUNT_EXPIRED"),
    "password expired": ("0xc000006e", "0xc0000071", "%%2309", "STATUS_PASSWORD_EXPIRED"), "locked": ("0xc0000234", "0x0", "%%2307", "STATUS_ACCOUNT_LOCKED_OUT"),
    "must change": ("0xc0000224", "0x0", "%%2309", "STATUS_PASSWORD_MUST_CHANGE"), "not granted": ("0xc000015b", "0x0", "%%2308", "STATUS_LOGON_TYPE_NOT_GRANTED"),
}
# The event, its status, and the name: RFC 4120, section 7.5.9.
KERBEROS = {
    "wrong password": (4771, "0x18", "KDC_ERR_PREAUTH_FAILED"), "locked": (4771, "0x12", "KDC_ERR_CLIENT_REVOKED"),
    "password expired": (4771, "0x17", "KDC_ERR_KEY_EXPIRED"), "unknown user": (4768, "0x6", "KDC_ERR_C_PRINCIPAL_UNKNOWN"),
}
MSSQL = {
    "wrong password": "Password did not match that for the login provided", "unknown user": "Could not find a login matching the name provided",
    "only Windows": "An attempt to login using SQL authentication failed. Server is configured for Windows authentication only",
}


@dataclasses.dataclass(eq=False)
class Came(Fact):
    """Somebody logged on: an account, the type of the logon, from where. The source is an address, a name, both, or neither."""

    account: Account
    type: int
    address: str = None
    workstation: str = None
    form: str = "{}"
    is_admin: bool = False
    has_other_half: bool = False
    lasts: float = None
    local: str = None  # The word for LOCAL in the language of Windows.

    @property
    def is_local(self):
        return self.address in ("::1", "127.0.0.1") or not self.address and self.workstation in CLAIMS

    @property
    def source(self):
        return None if self.is_local else self.address or self.workstation

    def event(self, telling, at, kind):
        """Writes 4624, and its other half if Windows split the token. Returns the time."""
        halves = [telling.logon_id(self.machine) for _ in range(2 if self.has_other_half and not self.machine.is_old else 1)]
        is_network, is_desktop = kind in (3, 8), isinstance(self, RemoteDesktop) and kind != 3
        address, workstation = self.form.format(self.address) if self.address else "-" if is_network else "127.0.0.1", self.workstation or "-"
        workstation = telling.names[self.machine] if workstation == ITSELF else workstation
        times, source = [], self.address if self.address else None if is_network else "127.0.0.1"
        for half, logon_id in enumerate(halves):
            data = subject(NOBODY) if is_network else subject(telling.system(self.machine), "0x3e7")
            data |= {"TargetUserSid": self.account.sid, "TargetUserName": self.account.name, "TargetDomainName": self.account.domain, "TargetLogonId": logon_id}
            data |= {"LogonType": str(kind), "LogonProcessName": "NtLmSsp " if kind == 3 else "User32 ", "AuthenticationPackageName": "NTLM" if kind == 3 else "Negotiate"}
            data |= {"WorkstationName": workstation if is_network else telling.names[self.machine], "LogonGuid": "{00000000-0000-0000-0000-000000000000}"}
            data |= {"TransmittedServices": "-", "LmPackageName": "-", "KeyLength": "0", "ProcessId": "0x0" if is_network else "0x4c4"}
            data |= {"ProcessName": "-" if is_network else "C:\\Windows\\System32\\winlogon.exe", "IpAddress": address, "IpPort": "49165" if self.address else "-"}
            if not self.machine.is_old:
                data |= {"ImpersonationLevel": "%%1833", "VirtualAccount": "%%1843", "TargetLinkedLogonId": halves[1 - half] if len(halves) == 2 else "0x0"}
                data |= {"ElevatedToken": "%%1843" if half else "%%1842"}
            remote_host = None if self.is_local else self.source if is_network else self.address
            told = {"user_name": (self.account, True), "user_sid": self.account.sid, "remote_host": remote_host}
            time = telling.write(self.machine, at, SECURITY, 4624, data, names=[self.account], told=told, version=1 if self.machine.is_old else 2)
            is_elevated = self.is_admin and half == 0
            if is_elevated:
                telling.write(self.machine, at, SECURITY, 4672, {**subject(self.account, logon_id), "PrivilegeList": PRIVILEGES}, names=[self.account])
            times.append(time)
            telling.open.append((self, {
                "computer": telling.computer(self.machine), "logon_time": time, "logoff_time": None, "logon_id": logon_id, "user_name": str(self.account),
                "logon_type": kind, "privileges": Any(bool(time and is_elevated)), "remote_host": OneOf([source] if time and self.address and not self.is_local else [None, source]),
                "doubts": Any(bool(time and is_network and self.workstation in CLAIMS)), "contested": False,
            }))
            if time and not is_desktop:
                telling.logons.append(telling.open[-1][1])
                written = next(event for event in reversed(telling.events) if event["event_id"] == 4624)
                telling.told_of[self] = written, telling.open[-1][1]
        if self.lasts is not None and not is_desktop:
            self.leave(telling, at + seconds(self.lasts))
        return times[0]

    def session(self, telling, at, event_id, account, number, address=None, told=None):
        """Writes an event of the local session manager. Returns the time."""
        data = {"EventXML": {"#attributes": {"xmlns": "Event_NS"}, "User": str(account), "SessionID": int(number), **({"Address": address} if address else {})}}
        return telling.write(self.machine, at, SESSIONS, event_id, user_data=data, user="S-1-5-18", told=told)

    def leave(self, telling, at):
        """Ends the open sessions of this fact."""
        for session in [session for came, session in telling.open if came is self]:
            data = {"TargetUserSid": self.account.sid, "TargetUserName": self.account.name, "TargetDomainName": self.account.domain, "TargetLogonId": session["logon_id"]}
            session["logoff_time"] = telling.write(self.machine, at, SECURITY, 4634, data | {"LogonType": str(session["logon_type"])}, names=[self.account])
            if session["logoff_time"] and not session["logon_time"]:
                # The logon was lost, so the account and the type are all that is known.
                telling.logons.append(session)
        telling.open = [(came, session) for came, session in telling.open if came is not self]

    def tell(self, telling):
        """A logon at the console, over the network, or one that unlocks."""
        time, began = self.event(telling, self.at, self.type), None
        if self.local:
            told = {"user_name": (self.account, True), "remote_host": None}
            began = self.session(telling, self.at + seconds(1), 21, self.account, telling.session_number(self.machine), self.local, told)
            if began and (not time or self.type not in (2, 11)):
                telling.logons.append({"computer": telling.computer(self.machine), "kind": "windows", "logon_time": began, "user_name": str(self.account), "logon_id": None})
        kind = {3: "Network", 8: "NetworkCleartext", 7: "Reconnect", 13: "Reconnect"}.get(self.type)
        telling.add(self.machine, "successes", [time or began], account=self.account, source=self.source)
        # A client can give any name, so one with that of the machine is not left out.
        is_claim = kind in ("Network", "NetworkCleartext") and not self.address and self.workstation in CLAIMS
        if kind and (self.source or is_claim):
            telling.add(self.machine, "visits", [time], account=self.account, source=self.source, kinds={kind}, logons=1)


@dataclasses.dataclass(eq=False)
class Planted(Fact):
    """Somebody planted a log with one record: a logon over the network as that of another account, from another address."""

    came: Came
    account: Account
    address: str

    def tell(self, telling):
        told = telling.told_of.get(self.came)
        if not told:
            return
        event, session = told
        data = {**event["event_data"], "TargetUserSid": self.account.sid, "TargetUserName": self.account.name, "TargetDomainName": self.account.domain, "IpAddress": self.address, "WorkstationName": "-"}
        time = telling.write(self.machine, event["at"], SECURITY, 4624, data, time=event["time_created"], planted_at=event, version=event["version"],
                             told={"user_name": (self.account, True), "user_sid": self.account.sid, "remote_host": self.address})
        telling.events[-1] |= {name: event[name] for name in ("computer", "passed")}
        telling.known.setdefault(self.account, set()).add(event["computer"])
        session["contested"] = True
        telling.logons.append({**session, "user_name": str(self.account), "logoff_time": None, "privileges": Any(False), "remote_host": self.address, "doubts": Any(False)})
        telling.add(self.machine, "successes", [time], account=self.account, source=self.address)
        telling.add(self.machine, "visits", [time], account=self.account, source=self.address, kinds={"Network"}, logons=1)


@dataclasses.dataclass(eq=False)
class RemoteDesktop(Came):
    """Somebody came by Remote Desktop: to a new session or back to one, once or several times."""

    sources: tuple = ()
    offsets: tuple = (0,)
    nla: tuple = (0,)
    nla_has_address: bool = True
    has_domain: bool = True
    is_back: bool = False
    leaves: tuple = ()

    def tell(self, telling):
        times, own, kinds, bare = [], [], set(), Account(self.account.name, "", self.account.sid)
        place = telling.computer(self.machine), self.account
        desktop = telling.desktops.get(place) if self.is_back else None
        for offset in self.offsets:
            at, connection, opened = self.at + seconds(offset), {"place": place, "times": [], "ids": set(), "logons": [], "is_back": False, "address": self.address}, len(telling.open)
            # Each time a session of its own, or always back to the same one.
            if not desktop or not self.is_back:
                number = telling.session_number(self.machine)
                # A logon before the logs has another ID than all in them.
                desktop = {"place": place, "number": number, "logon_id": hex(0x900000 + int(number)) if self.is_back else None}
            telling.desktops_of[self].append(desktop)
            # CredSSP logs on over the network first.
            for later in self.nla if 4624 in self.sources else ():
                first = dataclasses.replace(self, type=3, has_other_half=False, lasts=0.4, address=self.address if self.nla_has_address or not self.workstation else None)
                times.append(first.event(telling, at + seconds(later), 3))
                telling.add(self.machine, "successes", times[-1:], account=self.account, source=first.source)
                # It is told with the session that it opens, from where that came. A session that goes on began earlier.
                telling.add(self.machine, "visits", times[-1:], account=self.account, source=first.source if self.is_back else self.address, kinds={"Network"}, logons=1)
            steps = [(1149, 0.5, self.has_domain), (4624, 2, True), (25 if self.is_back else 21, 3, True), (4778, 3.1, True)]
            for step, later, has_domain in steps:
                if step not in self.sources or (step == 4778 and not self.is_back):
                    continue
                moment, account = at + seconds(later), self.account if has_domain else bare
                told = {"user_name": (account, True), "remote_host": self.address}
                if step == 4624:
                    opened = len(telling.open)
                    time = self.event(telling, moment, self.type)
                    logons = [session for _, session in telling.open[opened:]] if time else []
                    connection["logons"], connection["is_back"] = logons, self.is_back
                    if logons and not self.is_back:
                        desktop["logon_id"] = logons[0]["logon_id"]
                        connection["ids"].add((*place, "logon", desktop["logon_id"], desktop["number"]))
                elif step == 1149:
                    data = {"EventXML": {"#attributes": {"xmlns": "Event_NS"}, "Param1": account.name, "Param2": account.domain or None, "Param3": self.address}}
                    time = telling.write(self.machine, moment, CONNECTIONS, 1149, user_data=data, user="S-1-5-20", told=told)
                elif step == 4778:
                    time = self.named(telling, moment, 4778, desktop)
                    connection["ids"] |= {(*place, "logon", desktop["logon_id"], desktop["number"])} if time else set()
                else:
                    time = self.session(telling, moment, step, account, desktop["number"], self.address, told)
                    # 22 says that the shell has started.
                    self.session(telling, moment + seconds(0.2), 22, account, desktop["number"], self.address)
                    connection["ids"] |= {(*place, "number", desktop["number"])} if time else set()
                if time:
                    times.append(time)
                    connection["times"].append((step, time))
                    # 1149 can come before the password.
                    own += [time] if step != 1149 else []
                    kinds.add("Reconnect" if step in (25, 4778) or step == 4624 and self.type in (7, 13) else "RemoteInteractive")
            if connection["times"]:
                telling.connections.append(connection)
            self.disconnect(telling, at + seconds(5), desktop)
        if desktop["logon_id"] and 4624 in self.sources or any(step in self.sources for step in (21, 25, 4778)):
            telling.desktops[place] = desktop
        if self.lasts is not None:
            self.leave(telling, self.at + seconds(self.offsets[-1] + 2 + self.lasts))
        if kinds:
            # 1149 does not say whether the session is new.
            kinds = {"Reconnect"} if "Reconnect" in kinds else kinds
            telling.add(self.machine, "visits", times, account=self.account, source=self.address, kinds=kinds, logons=len(self.offsets))
            if own:
                telling.add(self.machine, "successes", own, account=self.account, source=self.address)

    def named(self, telling, at, event_id, desktop):
        """Writes 4778 or 4779, which have the logon ID of the session. Returns the time."""
        data = {"AccountName": self.account.name, "AccountDomain": self.account.domain, "LogonID": desktop["logon_id"], "SessionName": "RDP-Tcp#8", "ClientName": "JUMP01"}
        return telling.write(self.machine, at, SECURITY, event_id, data | {"ClientAddress": self.address})

    def disconnect(self, telling, at, desktop):
        place, told = desktop["place"], {"user_name": (self.account, True), "remote_host": self.address}
        for later, event_id in enumerate(self.leaves):
            moment = at + seconds(later / 10)
            if event_id != 4779 and not {21, 25} & set(self.sources):
                continue
            if event_id == 4779:
                time = self.named(telling, moment, 4779, desktop) if desktop["logon_id"] else None
                telling.add(self.machine, "visits", [time], account=self.account, source=self.address, kinds={"Disconnect"}, logons=0)
            elif event_id == 24:
                time = self.session(telling, moment, 24, self.account, desktop["number"], self.address, told)
            else:
                time = telling.write(self.machine, moment, SESSIONS, 40, user_data={"EventXML": {"#attributes": {"xmlns": "Event_NS"}, "Session": int(desktop["number"]), "Reason": 5}}, user="S-1-5-18")
            if time:
                telling.breaks.append(((*place, *(("logon", desktop["logon_id"], desktop["number"]) if event_id == 4779 else ("number", desktop["number"]))), event_id, time, self.address))

    def leave(self, telling, at):
        super().leave(telling, at)
        for desktop in telling.desktops_of[self]:
            if not self.is_back and any(step in self.sources for step in (21, 25)) and desktop["place"][0] == telling.computer(self.machine):
                time = self.session(telling, at, 23, self.account, desktop["number"])
                telling.breaks += [((*desktop["place"], "number", desktop["number"]), 23, time, None)] if time else []
            if telling.desktops.get(desktop["place"]) is desktop and not self.is_back:
                del telling.desktops[desktop["place"]]


@dataclasses.dataclass(eq=False)
class Left(Fact):
    """Somebody logged off, after whatever happened since the logon."""

    came: Came

    def tell(self, telling):
        self.came.leave(telling, self.at)


@dataclasses.dataclass(eq=False)
class Passed(Fact):
    """Somebody passed the RD Gateway."""

    account: Account
    address: str

    def tell(self, telling):
        data = {"#attributes": {"xmlns": "aag"}, "Username": str(self.account), "IpAddress": self.address, "AuthType": None, "Resource": "srv.example", "ConnectionProtocol": "HTTP", "ErrorCode": 0}
        # 300 says that the policy allows it, 303 that the connection has ended.
        telling.write(self.machine, self.at, GATEWAY, 300, user_data={"EventInfo": data}, user="S-1-5-20")
        time = telling.write(self.machine, self.at + seconds(1), GATEWAY, 302, user_data={"EventInfo": data}, user="S-1-5-20")
        end = telling.write(self.machine, self.at + seconds(50), GATEWAY, 303, user_data={"EventInfo": data}, user="S-1-5-20")
        telling.logons.append({"computer": telling.computer(self.machine), "kind": "gateway", "logon_time": time, "logoff_time": end, "user_name": str(self.account), "remote_host": self.address, "connections": None})
        telling.add(self.machine, "visits", [time], account=self.account, source=self.address, kinds={"RemoteInteractive"}, logons=1)
        telling.add(self.machine, "successes", [time], account=self.account, source=self.address)


@dataclasses.dataclass(eq=False)
class Failed(Fact):
    """Logons failed: in turn with some accounts, in some way, for a reason."""

    accounts: tuple
    way: str
    reason: str
    address: str
    workstation: str
    count: int
    interval: float
    controller: Machine
    sources: tuple
    form: str = "{}"
    typed: str = None

    def tell(self, telling):
        for number in range(self.count):
            account, at = self.accounts[number % len(self.accounts)], self.at + seconds(number * self.interval)
            # 4625 has the domain that somebody typed.
            account = dataclasses.replace(account, domain=self.typed) if self.typed and self.way == "network" else account
            getattr(self, self.way)(telling, at, account)

    def add(self, telling, machine, times, account, reason, source):
        telling.add(machine, "failures", times, account=account, reason=reason, source=source)

    def network(self, telling, at, account, kind=3):
        """NTLM: 4625 on the machine, 4776 where the account is, and 140 if it was for Remote Desktop."""
        status, sub_status, text, words = REASONS[self.reason]
        failure = None
        address, workstation = self.form.format(self.address) if self.address else "-", self.workstation or "-"
        if 4625 in self.sources:
            data = {**subject(NOBODY), "TargetUserSid": "S-1-0-0", "TargetUserName": account.name, "TargetDomainName": account.domain, "Status": status, "FailureReason": text}
            data |= {"SubStatus": sub_status, "LogonType": str(kind), "LogonProcessName": "NtLmSsp ", "AuthenticationPackageName": "NTLM", "WorkstationName": workstation}
            data |= {"TransmittedServices": "-", "LmPackageName": "-", "KeyLength": "0", "ProcessId": "0x0", "ProcessName": "-", "IpAddress": address, "IpPort": "49165" if self.address else "-"}
            failure = telling.write(self.machine, at, SECURITY, 4625, data, told={"user_name": (account, True), "user_sid": None, "remote_host": self.address or self.workstation})
            self.add(telling, self.machine, [failure], account, words, self.address or self.workstation)
        if 4776 in self.sources and self.workstation:
            where = self.controller or self.machine
            data = {"PackageName": "MICROSOFT_AUTHENTICATION_PACKAGE_V1_0", "TargetUserName": account.name, "Workstation": self.workstation, "Status": status if sub_status == "0x0" else sub_status}
            time = telling.write(where, at + seconds(0.05), SECURITY, 4776, data, told={"user_name": (Account(account.name, "", ""), True), "remote_host": self.workstation})
            if where is not self.machine or not failure:
                self.add(telling, where, [time], account, words, self.workstation)
        if 140 in self.sources and self.address and self.reason == "wrong password":
            time = telling.write(self.machine, at + seconds(0.2), RDP_CORE, 140, {"IPString": self.address}, user="S-1-5-20", level=3, told={"remote_host": self.address})
            if not failure:
                self.add(telling, self.machine, [time], None, "user name or password is not correct", self.address)

    def console(self, telling, at, account):
        status, sub_status, text, words = REASONS[self.reason]
        data = {**subject(telling.system(self.machine), "0x3e7"), "TargetUserSid": "S-1-0-0", "TargetUserName": account.name, "TargetDomainName": account.domain, "Status": status}
        data |= {"FailureReason": text, "SubStatus": sub_status, "LogonType": "2", "LogonProcessName": "User32 ", "AuthenticationPackageName": "Negotiate"}
        data |= {"WorkstationName": telling.names[self.machine], "ProcessName": "C:\\Windows\\System32\\winlogon.exe", "IpAddress": "127.0.0.1", "IpPort": "0"}
        time = telling.write(self.machine, at, SECURITY, 4625, data, told={"user_name": (account, True), "remote_host": None})
        self.add(telling, self.machine, [time], account, words, None)

    def kerberos(self, telling, at, account):
        event_id, status, words = KERBEROS[self.reason]
        data = {"TargetUserName": account.name, "TargetSid": "S-1-0-0" if event_id == 4768 else account.sid, "ServiceName": "krbtgt", "TicketOptions": "0x40810010", "Status": status}
        data |= {"PreAuthType": "2", "IpAddress": f"::ffff:{self.address}", "IpPort": "49165"}
        data |= {"TargetDomainName": account.domain, "ServiceSid": "S-1-0-0", "TicketEncryptionType": "0xffffffff"} if event_id == 4768 else {}
        time = telling.write(self.controller, at, SECURITY, event_id, data, told={"remote_host": self.address})
        self.add(telling, self.controller, [time], account, words, self.address)

    def mssql(self, telling, at, account):
        data = {"param1": account.name, "param2": f" Reason: {MSSQL[self.reason]}.", "param3": f" [CLIENT: {self.address}]", "Binary": "184800000E000000"}
        time = telling.write(self.machine, at, "MSSQLSERVER", 18456, data, level=0)
        self.add(telling, self.machine, [time], account, MSSQL[self.reason] + ".", self.address)

    def ssh(self, telling, at, account):
        user = f"invalid user {account.name}" if self.reason == "unknown user" else account.name
        if self.reason == "unknown user":
            telling.write(self.machine, at, SSH, 4, {"process": "sshd", "payload": f"Invalid user {account.name} from {self.address} port 56605"}, user="S-1-5-18")
        time = telling.write(self.machine, at + seconds(0.3), SSH, 4, {"process": "sshd", "payload": f"Failed password for {user} from {self.address} port 56605 ssh2"}, user="S-1-5-18")
        telling.write(self.machine, at + seconds(0.4), SSH, 4, {"process": "sshd", "payload": f"Connection closed by authenticating user {account.name} {self.address} port 56605 [preauth]"}, user="S-1-5-18")
        self.add(telling, self.machine, [time], account, "Invalid user" if self.reason == "unknown user" else "Failed password", self.address)


# User names and reasons that a client can send, which read like what sshd writes. Windows would not accept any of these names.
CLAIMED_ADDRESS = "203.0.113.9"
FORGED = tuple(text.replace("*", CLAIMED_ADDRESS) for text in (
    "root from * port 22", "root from * port 22 ssh2", "root * port 22", "Accepted password for root from * port 22 ssh2", "x from * port 22 ssh2: RSA SHA256:AAAA",
    "Disconnected from user root * port 22", "invalid user root from * port 22 ssh2", "Failed password for root from * port 22 ssh2", "root@*", "authenticating user root * port 22 [preauth]",
    "Received disconnect from * port 22:11: Accepted password for root", "Connection closed by *", "user root from * port 22",
))  # fmt: skip


@dataclasses.dataclass(eq=False)
class Pretended(Fact):
    """Somebody tried to log on by SSH with a name that reads like what sshd writes, and gave such a reason to leave."""

    name: str
    reason: str
    address: str
    count: int

    def tell(self, telling):
        account, told = Account(self.name, "", "S-1-0-0"), {"user_name": (Account(self.name, "", ""), True), "remote_host": self.address}
        for number in range(self.count):
            at, port = self.at + seconds(3 * number), f"port {50000 + number}"

            def write(later, text, told, at=at):
                return telling.write(self.machine, at + seconds(later), SSH, 4, {"process": "sshd", "payload": text}, user="S-1-5-18", told=told)

            write(0, f"Invalid user {self.name} from {self.address} {port}", told)
            failed = write(0.3, f"Failed password for invalid user {self.name} from {self.address} {port} ssh2", told)
            left = [
                (f"Received disconnect from {self.address} {port}:11: {self.reason} [preauth]", {"remote_host": self.address}),
                (f"Disconnected from invalid user {self.name} {self.address} {port} [preauth]", told),
                (f"Connection closed by invalid user {self.name} {self.address} {port} [preauth]", told),
                (f"Disconnecting invalid user {self.name} {self.address} {port}: Too many authentication failures [preauth]", told),
                (f"Disconnecting invalid user {self.name} {self.address} {port}: Change of username or service not allowed: ({self.name},ssh-connection) -> ({self.reason},ssh-connection) [preauth]", {"remote_host": None}),
                (f"error: maximum authentication attempts exceeded for invalid user {self.name} from {self.address} {port} ssh2 [preauth]", {"remote_host": OneOf([None, self.address])}),
                (f"Bad protocol version identification '{self.reason}' from {self.address} {port}", {"remote_host": OneOf([None, self.address])}),
            ]  # fmt: skip
            for later, (text, of_text) in enumerate(left, 4):
                write(later / 10, text, of_text)
            telling.add(self.machine, "failures", [failed], account=account, reason="Invalid user", source=self.address)


@dataclasses.dataclass(eq=False)
class Accepted(Fact):
    """SSH or SQL Server accepted the password of an account."""

    account: Account
    way: str
    address: str
    lasts: float = None

    def tell(self, telling):
        end = None
        if self.way == "ssh":
            time = telling.write(self.machine, self.at, SSH, 4, {"process": "sshd", "payload": f"Accepted password for {self.account.name} from {self.address} port 56605 ssh2"}, user="S-1-5-18")
        else:
            data = {"param1": self.account.name, "param2": f" [CLIENT: {self.address}]", "Binary": "164800000A000000"}
            time = telling.write(self.machine, self.at, "MSSQLSERVER", 18454, data, level=0)
        if self.way == "ssh" and self.lasts:
            end = telling.write(self.machine, self.at + seconds(self.lasts), SSH, 4, {"process": "sshd", "payload": f"Disconnected from user {self.account.name} {self.address} port 56605"}, user="S-1-5-18")
        telling.add(self.machine, "successes", [time], account=self.account, source=self.address)
        telling.add(self.machine, "visits", [time], account=self.account, source=self.address, kinds={"Accepted"}, logons=1)
        telling.logons.append({"computer": telling.computer(self.machine), "kind": {"ssh": "ssh", "mssql": "sql server"}[self.way], "logon_time": time, "logoff_time": end, "user_name": self.account.name, "remote_host": self.address})
