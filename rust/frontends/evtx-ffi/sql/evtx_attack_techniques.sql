-- evtx_attack_techniques(tags)
--
-- The techniques of MITRE ATT&CK in the tags of a Sigma rule: T1070.001.
--
-- SELECT evtx_attack_techniques(['attack.defense_evasion', 'attack.t1070.001'])

list_transform(
    [list_transform(
        list_filter(tags::VARCHAR[], lambda tag: regexp_full_match(tag, 'attack\.t\d{4}(\.\d{3})?', 'i')),
        lambda tag: upper(tag[8:]))],
    -- Each once.
    lambda names: list_filter(names, lambda name, place: list_position(names, name) = place))[1]
