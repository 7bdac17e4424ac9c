-- evtx_timeline_fields()
--
-- The fields of events that fill the columns of evtx_timeline, and the source of each entry, as a list of structs.
--
-- SELECT unnest(evtx_timeline_fields(), max_depth := 2)

-- An entry is about some events of a provider. It names the fields for user_name (account and domain), for remote_host and
-- for process; - stands for none. Fields with | between them are alternatives: the first that has a value counts. A domain
-- has the position of its account. Names that start with @ are computed from several fields, or extracted from a text: see
-- evtx_timeline. As structs of SQL, the entries would take DuckDB six times as long.
--
-- Sources: Learn, the page of the event on Microsoft Learn; manifest, the fields that the provider declares, as in
-- evtx_event_catalog(); message, the text of the event in its provider; Sysmon, the schema of Sysmon; logs, the events
-- in real logs; EvtxECmd, the maps of that tool. MSSQLSERVER is every instance of SQL Server.

list_transform(
    list_transform(string_split(trim(regexp_replace('
    Application Error / 1000 / - / - / - / AppPath|param11 / logs;
    CiscoSecureEndpoint / 100 / - / - / - / ProcessName / EvtxECmd;
    Microsoft-Windows-Application-Experience / 500 501 505 / - / - / - / ExePath / manifest;
    Microsoft-Windows-AppLocker / 8002 8003 8004 / TargetUser / - / - / FilePath|FilePathBuffer / manifest;
    Microsoft-Windows-AppLocker / 8005 8006 8007 / TargetUser / - / - / - / manifest;
    Microsoft-Windows-AppModel-Runtime / 69 70 / User / - / - / - / manifest;
    Microsoft-Windows-AppReadiness / 106 107 209 210 211 214 216 217 218 226 240 241 302 303 304 309 310 314 / User /
        - / - / - / manifest;
    Microsoft-Windows-AppReadiness / 213 215 220 221 225 / Username / - / - / - / manifest;
    Microsoft-Windows-AppXDeployment-Server / 400 401 404 478 603 604 / - / - / - / CallingProcess / manifest;
    Microsoft-Windows-AppXDeployment-Server / 607 626 / UserSid / - / - / CallingProcess / manifest;
    Microsoft-Windows-AppXDeployment-Server / 818 821 / UserSid / - / - / - / manifest;
    Microsoft-Windows-Bits-Client / 3 / jobOwner / - / - / processPath / manifest;
    Microsoft-Windows-Bits-Client / 4 5 / User / - / - / - / manifest;
    Microsoft-Windows-Bits-Client / 59 60 61 / - / - / @url / - / manifest;
    Microsoft-Windows-Bits-Client / 16403 / User / - / @url / - / manifest;
    Microsoft-Windows-Crypto-DPAPI / 12289 / UserName / - / - / - / logs;
    Microsoft-Windows-Diagnostics-Performance / 101 / - / - / - / Path / manifest;
    Microsoft-Windows-DistributedCOM / 10009 / - / - / param1 / - / message;
    Microsoft-Windows-DistributedCOM / 10015 10016 10017 10018 10019 / param8 / - / param9 / - / message;
    Microsoft-Windows-DistributedCOM / 10028 / - / - / param1 / param3 / message;
    Microsoft-Windows-DistributedCOM / 10036 / UserName|param2 / DomainName|param1 / ClientIPAddress|param4 / - /
        message;
    Microsoft-Windows-Eventlog / 104 1102 / SubjectUserName / SubjectDomainName / - / - / Learn;
    Microsoft-Windows-GroupPolicy / 4000 4001 4002 4003 4004 4005 4006 4007 5315 8000 8001 8002 8003 8004 8005 8006
        8007 / PrincipalSamName / - / - / - / manifest;
    Microsoft-Windows-Kernel-General / 1 / - / - / - / ProcessName / manifest;
    Microsoft-Windows-Ntfs / 151 / - / - / - / ProcessName / logs;
    Microsoft-Windows-NTLM / 4001 8001 / UserName / DomainName / - / ProcessName / manifest;
    Microsoft-Windows-NTLM / 4002 8002 / ClientUserName / ClientDomainName / - / ProcessName / manifest;
    Microsoft-Windows-NTLM / 4003 8003 / UserName / DomainName / Workstation / ProcessName / manifest;
    Microsoft-Windows-NTLM / 4020 4021 / Username / DomainName / TargetIP|TargetMachine / ProcessName / manifest;
    Microsoft-Windows-NTLM / 4022 4023 / Username / DomainName / ClientIP|RemoteClientMachine / ProcessName /
        manifest;
    Microsoft-Windows-PowerShell / 4100 4101 4102 / @user / - / - / @program / logs;
    Microsoft-Windows-PowerShell / 4103 / @user / - / - / @program / logs;
    Microsoft-Windows-PrintService / 307 / Param3 / - / Param4 / - / message;
    Microsoft-Windows-Program-Compatibility-Assistant / 11 / - / - / - / FullImagePath / manifest;
    Microsoft-Windows-Program-Compatibility-Assistant / 16 17 / - / - / - / ExePath / manifest;
    Microsoft-Windows-Program-Compatibility-Assistant / 30 31 / - / - / - / ExecutablePath / manifest;
    Microsoft-Windows-PushNotifications-Platform / 3000 3001 3006 3007 / - / - / - / ProcessName / manifest;
    Microsoft-Windows-RemoteDesktopServices-RdpCoreTS / 131 / - / - / ClientIP / - / manifest;
    Microsoft-Windows-RemoteDesktopServices-RdpCoreTS / 139 140 / - / - / IPString / - / manifest;
    Microsoft-Windows-RestartManager / 10002 10003 10004 10006 10010 / - / - / - / FullPath / logs;
    Microsoft-Windows-Search-ProfileNotify / 1 / User / - / - / - / logs;
    Microsoft-Windows-Security-Auditing / 4611 4659 4664 4690 4691 4692 4693 4694 4695 4704 4705 4706 4707 4713 4714
        4715 4716 4717 4718 4727 4729 4730 4731 4733 4734 4735 4737 4739 4743 4744 4745 4746 4747 4748 4749 4750 4751
        4752 4753 4754 4755 4757 4758 4759 4760 4761 4762 4763 4764 4765 4766 4767 4780 4782 4783 4784 4785 4786 4787
        4788 4789 4790 4791 4792 4817 4819 4826 4830 4865 4866 4867 4868 4869 4870 4871 4873 4874 4875 4876 4877 4882
        4883 4884 4885 4890 4891 4892 4894 4896 4912 5056 5057 5058 5059 5060 5061 5063 5064 5065 5066 5067 5068 5069
        5070 5071 5122 5123 5124 5125 5138 5139 5141 5143 5144 5168 5169 5170 5376 5377 5379 5380 5381 5382 5632 5633
        6279 6280 6416 6419 6420 6421 6422 6423 6424 6426 6427 6428 6429 / SubjectUserName / SubjectDomainName / - / -
        / manifest;
    Microsoft-Windows-Security-Auditing / 4615 4658 4660 4661 4670 4674 4696 4703 4818 4904 4905 4907 4911 4913 4985
        5039 5051 / SubjectUserName / SubjectDomainName / - / ProcessName / manifest;
    Microsoft-Windows-Security-Auditing / 4616 4656 4657 4663 4673 4689 / SubjectUserName / SubjectDomainName / - /
        ProcessName / Learn;
    Microsoft-Windows-Security-Auditing / 4618 / TargetUserName / TargetUserDomain / - / - / manifest;
    Microsoft-Windows-Security-Auditing / 4624 4625 / TargetUserName / TargetDomainName / IpAddress|WorkstationName /
        ProcessName / Learn;
    Microsoft-Windows-Security-Auditing / 4626 / TargetUserName / TargetDomainName / - / - / manifest;
    Microsoft-Windows-Security-Auditing / 4627 4634 4647 4675 4800 4801 4802 4803 4964 / TargetUserName /
        TargetDomainName / - / - / Learn;
    Microsoft-Windows-Security-Auditing / 4648 / SubjectUserName / SubjectDomainName / IpAddress|TargetServerName /
        ProcessName / Learn;
    Microsoft-Windows-Security-Auditing / 4649 / SubjectUserName / SubjectDomainName / WorkstationName / ProcessName /
        manifest;
    Microsoft-Windows-Security-Auditing / 4650 4651 4652 4653 4654 4655 4960 4961 4962 4963 4965 4976 4977 4978 4979
        4980 4981 4982 4983 4984 / - / - / RemoteAddress / - / manifest;
    Microsoft-Windows-Security-Auditing / 4662 4672 4698 4699 4700 4701 4702 4719 4720 4722 4723 4724 4725 4726 4728
        4732 4738 4741 4742 4756 4781 5136 5137 5142 / SubjectUserName / SubjectDomainName / - / - / Learn;
    Microsoft-Windows-Security-Auditing / 4665 4666 4667 4668 / ClientName / ClientDomain / - / - / manifest;
    Microsoft-Windows-Security-Auditing / 4671 / CallerUserName / CallerDomainName / - / - / manifest;
    Microsoft-Windows-Security-Auditing / 4688 / TargetUserName|SubjectUserName / TargetDomainName|SubjectDomainName /
        - / NewProcessName / Learn;
    Microsoft-Windows-Security-Auditing / 4697 / SubjectUserName / SubjectDomainName / - / ServiceFileName / Learn;
    Microsoft-Windows-Security-Auditing / 4740 / TargetUserName / - / TargetDomainName / - / Learn;
    Microsoft-Windows-Security-Auditing / 4768 4769 4770 / TargetUserName / TargetDomainName / IpAddress / - / Learn;
    Microsoft-Windows-Security-Auditing / 4771 / TargetUserName / - / IpAddress / - / Learn;
    Microsoft-Windows-Security-Auditing / 4772 4773 4820 4821 / TargetUserName / TargetDomainName / IpAddress / - /
        manifest;
    Microsoft-Windows-Security-Auditing / 4774 4775 / ClientUserName / - / - / - / manifest;
    Microsoft-Windows-Security-Auditing / 4776 / TargetUserName / - / Workstation / - / Learn;
    Microsoft-Windows-Security-Auditing / 4777 / TargetUserName / - / Workstation / - / manifest;
    Microsoft-Windows-Security-Auditing / 4778 4779 / AccountName / AccountDomain / ClientAddress|ClientName / - /
        Learn;
    Microsoft-Windows-Security-Auditing / 4793 4794 4797 / SubjectUserName / SubjectDomainName / Workstation / - /
        manifest;
    Microsoft-Windows-Security-Auditing / 4798 4799 / SubjectUserName / SubjectDomainName / - / CallerProcessName /
        Learn;
    Microsoft-Windows-Security-Auditing / 4822 4823 / AccountName / - / - / - / manifest;
    Microsoft-Windows-Security-Auditing / 4824 / TargetUserName / - / IpAddress / - / manifest;
    Microsoft-Windows-Security-Auditing / 4825 / AccountName / AccountDomain / ClientAddress / - / Learn;
    Microsoft-Windows-Security-Auditing / 4928 4929 4930 4931 / - / - / SourceAddr / - / manifest;
    Microsoft-Windows-Security-Auditing / 5031 5154 5155 5158 5159 / - / - / - / Application / manifest;
    Microsoft-Windows-Security-Auditing / 5050 / - / - / - / CallerProcessName / manifest;
    Microsoft-Windows-Security-Auditing / 5140 5145 / SubjectUserName / SubjectDomainName / IpAddress / - / Learn;
    Microsoft-Windows-Security-Auditing / 5152 5153 / - / - / @remote / Application / Learn;
    Microsoft-Windows-Security-Auditing / 5156 5157 / - / - / DestAddress / Application / Learn;
    Microsoft-Windows-Security-Auditing / 5160 / - / - / DestAddress / Application / manifest;
    Microsoft-Windows-Security-Auditing / 5378 / SubjectUserName / SubjectDomainName / TargetServer / - / manifest;
    Microsoft-Windows-Security-Auditing / 5446 5447 5448 5449 5450 / UserName / - / - / - / manifest;
    Microsoft-Windows-Security-Auditing / 5712 / SubjectUserName / SubjectDomainName / RemoteIpAddress|RemoteHost /
        ProcessName / manifest;
    Microsoft-Windows-Security-Auditing / 5888 5889 5890 / SubjectUserName / SubjectUserDomainName / - / - / manifest;
    Microsoft-Windows-Security-Auditing / 6272 6273 6274 6275 6276 6277 6278 / SubjectUserName / SubjectDomainName /
        ClientIPAddress / - / manifest;
    Microsoft-Windows-Security-Auditing / 6400 6401 6402 / - / - / ClientIPAddress / - / manifest;
    Microsoft-Windows-Security-Auditing / 6417 6418 / - / - / - / ProcessName / manifest;
    Microsoft-Windows-Security-Auditing / 6425 / SubjectUserName / SubjectDomainName / ClientNetworkAddress / - /
        manifest;
    Microsoft-Windows-Security-Auditing / 6430 / UserName / DomainName / - / - / manifest;
    Microsoft-Windows-Security-Mitigations / 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 / -
        / - / - / ProcessPath / manifest;
    Microsoft-Windows-Shell-Core / 9707 9708 9709 9710 9711 9712 / - / - / - / Command / manifest;
    Microsoft-Windows-SMBClient / 30800 30803 30804 30805 30806 30807 30808 / - / - / ServerName / - / manifest;
    Microsoft-Windows-SMBClient / 31001 31017 / UserName / - / ServerName / - / manifest;
    Microsoft-Windows-SMBServer / 551 1006 / UserName / - / ClientName / - / manifest;
    Microsoft-Windows-SMBServer / 552 / UserName / DomainName / - / - / manifest;
    Microsoft-Windows-SMBServer / 1007 1009 3000 / - / - / ClientName / - / manifest;
    Microsoft-Windows-SMBServer / 1016 1020 / - / - / ClientName / - / manifest;
    Microsoft-Windows-Sysmon / 1 2 5 7 9 11 12 13 14 15 17 18 22 23 24 25 26 27 28 29 / User / - / - / Image / Sysmon;
    Microsoft-Windows-Sysmon / 3 / User / - / @remote / Image / Sysmon;
    Microsoft-Windows-Sysmon / 8 10 / SourceUser / - / - / SourceImage / Sysmon;
    Microsoft-Windows-Sysmon / 19 20 21 / User / - / - / - / Sysmon;
    Microsoft-Windows-TaskScheduler / 100 101 102 103 106 110 / UserContext / - / - / - / manifest;
    Microsoft-Windows-TaskScheduler / 104 119 120 121 122 123 124 125 140 141 142 / UserName / - / - / - / manifest;
    Microsoft-Windows-TaskScheduler / 129 / - / - / - / Path / manifest;
    Microsoft-Windows-TaskScheduler / 200 201 / - / - / - / ActionName / manifest;
    Microsoft-Windows-TerminalServices-ClientActiveXCore / 1024 1102 / - / - / Value / - / logs;
    Microsoft-Windows-TerminalServices-Gateway / 200 300 302 303 312 / Username / - / IpAddress / - / logs;
    Microsoft-Windows-TerminalServices-Gateway / 201 301 304 / Username / - / IpAddress / - / message;
    Microsoft-Windows-TerminalServices-Gateway / 313 / Username / - / IpAddress / - / EvtxECmd;
    Microsoft-Windows-TerminalServices-LocalSessionManager / 21 22 24 25 / User / - / Address / - / manifest;
    Microsoft-Windows-TerminalServices-LocalSessionManager / 23 41 42 / User / - / - / - / manifest;
    Microsoft-Windows-TerminalServices-RemoteConnectionManager / 1149 / Param1 / Param2 / Param3 / - / message;
    Microsoft-Windows-TerminalServices-RemoteConnectionManager / 1158 / - / - / Param1 / - / manifest;
    Microsoft-Windows-TerminalServices-RemoteConnectionManager / 20499 / UserName / - / - / - / manifest;
    Microsoft-Windows-User Profiles Service / 50 51 52 54 1517 / UserSid / - / - / - / manifest;
    Microsoft-Windows-User Profiles Service / 67 / @user / - / - / - / logs;
    Microsoft-Windows-UserModePowerService / 12 51 / - / - / - / ProcessPath / manifest;
    Microsoft-Windows-Win32k / 260 / - / - / - / SourceProcessName / manifest;
    Microsoft-Windows-Windows Defender / 1000 1001 1002 1005 1007 1008 1013 2000 2001 2002 2003 / User / Domain / - /
        - / manifest;
    Microsoft-Windows-Windows Defender / 1003 1004 1009 1010 1011 1012 1014 2010 2011 2012 2013 / User / Domain / - /
        - / manifest;
    Microsoft-Windows-Windows Defender / 1006 1015 / User / Domain / - / Process Name / manifest;
    Microsoft-Windows-Windows Defender / 1116 1117 1118 1119 / Detection User / - / - / Process Name / Learn;
    Microsoft-Windows-Windows Defender / 1121 1122 / User / - / - / Process Name / manifest;
    Microsoft-Windows-Windows Defender / 1123 1124 1125 1126 1127 1128 1129 / User / - / - / Process Name / manifest;
    Microsoft-Windows-Windows Defender / 1131 1132 / User / - / - / Process / manifest;
    Microsoft-Windows-Windows Defender / 1133 1134 / User Sid / - / - / Process / manifest;
    Microsoft-Windows-Windows Defender / 1160 / - / - / - / Process Name / manifest;
    Microsoft-Windows-Windows Firewall With Advanced Security / 2002 2003 2004 2005 2006 2033 2071 2073 2082 2097 2099
        / ModifyingUser / - / - / ModifyingApplication / manifest;
    Microsoft-Windows-Winlogon / 7001 7002 / UserSid / - / - / - / manifest;
    Microsoft-Windows-WinRM / 169 / username / - / - / - / message;
    Microsoft-Windows-Winsrv / 10001 10002 / - / - / - / AppName / manifest;
    Microsoft-Windows-WMI-Activity / 5857 / - / - / - / HostProcess / manifest;
    Microsoft-Windows-WMI-Activity / 5858 / User / - / ClientMachine / - / manifest;
    Microsoft-Windows-WMI-Activity / 5859 / User / - / - / - / manifest;
    Microsoft-Windows-WMI-Activity / 5860 / User / - / ClientMachine / - / logs;
    MSSQLSERVER / 18453 18454 18456 / param1 / - / @client / - / message;
    MSSQLSERVER / 33205 / @user / - / - / - / logs;
    NETLOGON / 5722 / param2 / - / param1 / - / message;
    NETLOGON / 5723 5805 / - / - / param1 / - / message;
    NETLOGON / 5827 5829 5830 / param1 / param2 / - / - / message;
    OpenSSH / 4 / @user / - / @client / - / logs;
    PowerShell / 400 403 600 800 / @user / - / - / @program / logs;
    PowerShellCore / 4103 / @user / - / - / @program / logs;
    Service Control Manager / 7045 / - / - / - / ImagePath / manifest;
    Splashtop-Splashtop Streamer-Remote Session / 1100 1101 1110 1111 / - / - / SRC_Name / - / EvtxECmd;
    TermDD / 56 / - / - / param2 / - / message;
    User32 / 1074 / param7 / - / - / @program / message;
    Windows Error Reporting / 1001 / - / - / - / @program / message
', '\s+', ' ', 'g')), '; '), lambda entry: string_split(entry, ' / ')),
    lambda field: {
        provider: field[1], event_ids: string_split(field[2], ' ')::UINTEGER[], account: nullif(field[3], '-'),
        domain: nullif(field[4], '-'), remote_host: nullif(field[5], '-'), process: nullif(field[6], '-'), source: field[7]
    })
