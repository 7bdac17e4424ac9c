-- evtx_attack_tactics(tags)
--
-- The tactics of MITRE ATT&CK in the tags of a Sigma rule, as ATT&CK writes them: defense-evasion.
--
-- SELECT evtx_attack_tactics(['attack.defense_evasion', 'attack.t1070.001'])

list_transform(
    [list_transform(
        -- Techniques, groups and software have digits.
        list_filter(tags::VARCHAR[], lambda tag: regexp_full_match(tag, 'attack\.[a-z_-]+', 'i')),
        lambda tag: replace(lower(tag[8:]), '_', '-'))],
    -- Each once.
    lambda names: list_filter(names, lambda name, place: list_position(names, name) = place))[1]
