"""Templates of the generated statements. `;` separates the forms of a template.

`<...>` is a token that the generator in statements.py expands.
"""


def forms(text):
    return [" ".join(form.split()) for form in text.split(";")]


# ---- Predicates

EQUALITIES = ["=", "=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
COMPARISONS = [*EQUALITIES, "<", "<=", ">", ">="]
PLAIN = "number text time uuid"
ORDERED = PLAIN + " float bool blob"
# DuckDB merges two comparisons of lists into a BETWEEN, which lists do not support. So lists are only tested for equality.
ANY = ORDERED + " list"
# Predicates on an operand <x>: the families of types that they apply to, a weight, and the forms. The tokens:
# - <v>, <lo>, <hi>: constants of <x>. <vs>: a few of them, <many>: up to some hundred. <t>: one as text.
# - <near>: a number just above a value. <k>: a small number.
# - <y>: an operand of the same family. <z>: any operand, <w>: a constant of it.
# - <s>: <x> in <same>, another scan of the same source.
# No form can fail on a value, because the plan decides which values are evaluated.
SHAPES = {
    "comparison": (ANY, 10, "<x> <op> <v>"),
    "constant first": (ANY, 3, "<v> <op> <x>"),
    "range": (
        ORDERED,
        20,
        """<x> > <lo> AND <x> < <hi>; <x> < <hi> AND <x> > <lo>; <x> >= <lo> AND <x> < <hi>; <x> > <lo> AND <x> <= <hi>;
        <x> <= <hi> AND <x> > <lo>; <x> >= <lo> AND <x> <= <hi>; <lo> < <x> AND <hi> > <x>""",
    ),
    "not a range": (ORDERED, 3, "NOT (<x> > <lo> AND <x> < <hi>); <x> < <lo> OR <x> > <hi>; NOT (<x> >= <lo> AND <x> < <hi>)"),
    "empty range": (
        PLAIN,
        1,
        "<x> > <hi> AND <x> < <lo>; <x> >= <v> AND <x> < <v>; <x> = <v> AND <x> IS NULL; <x> = <lo> AND <x> = <hi>",
    ),
    "between": (
        ORDERED,
        6,
        """<x> BETWEEN <lo> AND <hi>; NOT (<x> BETWEEN <lo> AND <hi>); <x> NOT BETWEEN <lo> AND <hi>;
        <v> BETWEEN <x> AND <hi>""",
    ),
    "in": (ANY, 6, "<x> IN (<vs>); <x> NOT IN (<vs>); <x> = <v> OR <x> = <lo> OR <x> = <hi>; <x> <> <lo> AND <x> <> <hi>"),
    "in with null": (ANY, 2, "<x> IN (<vs>, NULL); <x> NOT IN (NULL, <vs>)"),
    "in many": (PLAIN, 3, "<x> IN (<many>); <x> NOT IN (<many>)"),
    "in a list": (PLAIN, 1, "<x> IN (SELECT unnest([<vs>])); <x> = ANY ([<vs>]); list_contains([<vs>], <x>)"),
    "null": (
        ANY + " json map",
        5,
        "<x> IS NULL; <x> IS NOT NULL; NOT (<x> IS NULL); <x> IS DISTINCT FROM NULL; <x> IS NOT DISTINCT FROM NULL",
    ),
    "distinct": (ANY, 3, "<x> IS DISTINCT FROM <v>; <x> IS NOT DISTINCT FROM <v>; NOT (<x> IS DISTINCT FROM <v>)"),
    "negated": (ANY, 2, "NOT (<x> <op> <v>); NOT (NOT (<x> <op> <v>)); NOT (<x> IN (<vs>))"),
    "truth": (
        ANY,
        2,
        """(<x> <op> <v>) IS NOT TRUE; (<x> <op> <v>) IS TRUE; (<x> <op> <v>) IS NULL; (<x> <op> <v>) = (<z> = <w>);
        coalesce(<x> <op> <v>, true)""",
    ),
    "columns": (ORDERED, 2, "<x> <op> <y>; <x> = <y> AND <x> <op> <v>; <x> BETWEEN <y> AND <hi>"),
    "function": (
        PLAIN,
        2,
        """coalesce(<x>, <v>) = <v>; nullif(<x>, <v>) IS NULL; greatest(<x>, <v>) = <v>; if(<x> IS NULL, <v>, <x>) <op> <v>;
        CASE WHEN <x> <op> <v> THEN <z> = <w> ELSE <x> IS NULL END""",
    ),
    "macro": (ORDERED, 2, "strictly_between(<x>, <lo>, <hi>); is_one_of(<x>, <lo>, <hi>); NOT is_one_of(<x>, <lo>, <hi>)"),
    "row": (PLAIN, 1, "(<x>, <z>) = (<v>, <w>); (<x>, <z>) IN ((<v>, <w>), (<lo>, <w>)); (<x>, <z>) <> (<v>, <w>)"),
    "cast": (ANY, 2, "<x>::VARCHAR = <t>; <x>::VARCHAR > <t>; <x>::VARCHAR LIKE <like>; length(<x>::VARCHAR) > <k>"),
    "subquery": (
        PLAIN,
        1,
        """<x> <op> (SELECT max(<s>) FROM <same> AS s WHERE <s> <op> <v>); <x> = (SELECT min(<s>) FROM <same> AS s);
        <x> IN (SELECT <s> FROM <same> AS s WHERE <s> <op> <v>)""",
    ),
    "arithmetic": (
        "number",
        3,
        """<x>::HUGEINT + <k> <op> <v>; <x> % <k> = <k>; <x> // <k> > <k>; <k> - <x>::HUGEINT < <k>;
        <x>::HUGEINT <op> <v>; <x>::DOUBLE <op> <v>""",
    ),
    "addition": ("small", 6, "<x> + 1 <op> <near>; <k> + <x> > <near>; <x> + 1 > <near> AND <x> + 1 < <near>"),
    "like": (
        "text",
        8,
        """<x> LIKE <like>; <x> LIKE <like>; <x> NOT LIKE <like>; NOT (<x> LIKE <like>); <x> ILIKE <like>;
        <x> NOT ILIKE <like>; <x> LIKE <like> ESCAPE '!'""",
    ),
    "part": (
        "text",
        5,
        """starts_with(<x>, <part>); prefix(<x>, <part>); suffix(<x>, <part>); contains(<x>, <part>); <x> ^@ <part>;
        ends_with(<x>, <part>); <x> GLOB <glob>""",
    ),
    "regexp": ("text", 3, "regexp_matches(<x>, <regexp>); <x> SIMILAR TO <regexp>; regexp_full_match(<x>, <regexp>)"),
    "text function": (
        "text",
        3,
        """lower(<x>) = lower(<v>); <x> || 'a' = <v>; (<x>)[1:3] = <part>; length(<x>) > <k>; upper(<x>) > <v>;
        TRY_CAST(<x> AS INTEGER) <op> <k>""",
    ),
    "collation": (
        "text",
        3,
        "<x> COLLATE NOCASE <op> <v>; <x> COLLATE NOCASE IN (<vs>); <x> COLLATE NOCASE > <lo> AND <x> < <hi>",
    ),
    "time function": (
        "time",
        3,
        "date_trunc('hour', <x>) <op> <v>; year(<x>) = 2024; epoch_ns(<x>) % <k> = 0; <x>::TIMESTAMP <op> <v>",
    ),
    "truth of a column": ("bool", 5, "<x>; NOT <x>; <x> IS TRUE; <x> IS NOT FALSE"),
    "list": ("list", 5, "len(<x>) > <k>; list_contains(<x>::VARCHAR[], <t>); <x>[1] IS NULL"),
    "map": ("map", 5, "cardinality(<x>) > <k>; map_contains(<x>, 'param1'); <x>['param1'] IS NOT NULL"),
    "json": ("json", 5, "<x>->>'$.*' IS NULL; json_valid(<x>); json_keys(<x>)[1] IS NOT NULL"),
}
SHAPES = {name: (set(families.split()), weight, forms(text)) for name, (families, weight, text) in SHAPES.items()}
MACROS = ["strictly_between(x, low, high) AS x > low AND x < high", "is_one_of(x, one, other) AS x IN (one, other)"]

# ---- Queries

# The weight and the forms of each kind. An alias is a letter for a source. With a digit, it is the same source again.
# - <from a>: a source with its alias. <rows a>: the same with a predicate. <call a>: just a call.
# - <p a b>: a predicate over these sources. <cols a b>, <agg a>, <aggs a b>: what to select.
# - <x1 a> (any operand), <n1 a> (a number), <g1 a> (one to group by), <list> (columns): the same each time.
# - <vg1 a>: a constant of <g1 a>.
#
# Every order is total: ORDER BY ALL and windows order by all selected columns, so that tied rows are equal. Sums are of integers. An
# ASOF join selects only what equally near rows share. The exception is a limit without an order: DuckDB keeps the order of the logs.
QUERIES = {
    "filter": (
        12,
        """SELECT <cols a> <rows a>; SELECT count(*) <rows a>; SELECT * <rows a>; SELECT DISTINCT <cols a> <rows a>;
        SELECT <cols a> <rows a> AND <p a>; SELECT <cols a> FROM (SELECT * <rows a>) AS a WHERE <p a>""",
    ),
    "order and limit": (
        5,
        """SELECT <cols a> <rows a> ORDER BY ALL <dir>;
        SELECT <cols a> <rows a> ORDER BY ALL <dir> LIMIT <k>;
        SELECT <x1 a> <rows a> ORDER BY ALL <dir> LIMIT <k> OFFSET <k>;
        SELECT count(*), count(x) FROM (SELECT <x1 a> AS x <rows a> ORDER BY x <dir> LIMIT <k>);
        SELECT DISTINCT ON (<g1 a>) <g1 a>, <x1 a> <rows a> ORDER BY <g1 a>, <x1 a>""",
    ),
    "limit in the order of the log": (2, "SELECT <cols a> FROM <call a> AS a WHERE <p a> LIMIT <k> OFFSET <k>"),
    "aggregate": (
        6,
        """SELECT <aggs a> <rows a>;
        SELECT <g1 a>, <aggs a> <rows a> GROUP BY ALL;
        SELECT <aggs a>, count(*) FILTER (WHERE <p a>), sum(<n1 a>::HUGEINT) FILTER (WHERE <p a>) <rows a>""",
    ),
    "having": (
        3,
        """SELECT <g1 a>, <aggs a> <rows a> GROUP BY ALL HAVING count(*) > <k>;
        SELECT <g1 a> FROM <from a> GROUP BY <g1 a> HAVING <g1 a> > <vg1 a> AND <g1 a> < <vg1 a>;
        SELECT <g1 a>, max(<x1 a>) <rows a> GROUP BY ALL HAVING max(<x1 a>) <= <vx1 a> OR count(*) = 1""",
    ),
    "grouping sets": (
        6,
        """SELECT <g1 a>, <g2 a>, <aggs a> <rows a> GROUP BY ROLLUP (<g1 a>, <g2 a>);
        SELECT <g1 a>, <g2 a>, <aggs a> <rows a> GROUP BY CUBE (<g1 a>, <g2 a>);
        SELECT <g1 a>, <g2 a>, grouping(<g1 a>), <aggs a> <rows a> GROUP BY GROUPING SETS ((<g1 a>), (<g2 a>), ());
        SELECT * FROM (SELECT <g1 a> AS k, <g2 a> AS l, <aggs a> <rows a> GROUP BY ROLLUP (<g1 a>, <g2 a>)) WHERE k > <vg1 a>;
        WITH w AS <mat> (SELECT <g1 a> AS k, <g2 a> AS l, <aggs a> <rows a> GROUP BY CUBE (<g1 a>, <g2 a>))
            SELECT * FROM w <set> SELECT * FROM w WHERE k > <vg1 a>""",
    ),
    "distinct aggregates": (
        5,
        """SELECT count(DISTINCT <x1 a>), count(DISTINCT <x2 a>), sum(DISTINCT <n1 a>::HUGEINT) <rows a>;
        SELECT <g1 a>, count(DISTINCT <x1 a>), count(DISTINCT <x2 a>), count(*) <rows a> GROUP BY ALL;
        SELECT <g1 a>, count(DISTINCT <x1 a>), count(DISTINCT <x2 a>) <rows a> GROUP BY ROLLUP (<g1 a>);
        WITH w AS <mat> (SELECT <g1 a> AS k, count(DISTINCT <x1 a>) AS x, count(DISTINCT <x2 a>) AS y <rows a> GROUP BY ALL)
            SELECT k, v.x, v.y FROM w AS v JOIN w USING (k) UNION ALL SELECT k, x, y FROM w WHERE k > <vg1 a>;
        WITH w AS <mat> (SELECT count(DISTINCT <x1 a>) AS x, count(DISTINCT <x2 a>) AS y, <aggs a> <rows a>)
            SELECT * FROM w <set> SELECT * FROM w""",
    ),
    "join": (
        9,
        """SELECT <cols a b> FROM <from a> <join> <from b> ON <on a b> WHERE <p a b>;
        SELECT <cols a b> FROM <from a> <join> <from b> ON <on a b> AND <p b>;
        SELECT <cols a a1> FROM <from a> <join> <from a1> ON <on a a1> WHERE <p a1>;
        SELECT <aggs a a1> FROM <from a> <join> <from a1> ON <wide a a1> WHERE <p a> AND <p a1>;
        SELECT <aggs a> FROM <from a> <join> <from b> ON <on a b> AND <p a b> WHERE <p a>;
        SELECT <aggs b c> FROM <from a> <join> <from b> ON <on a b> <join> <from c> ON <on a c> WHERE <p a c>;
        SELECT <aggs a b> FROM <from a>, <from b> WHERE <on a b> AND <p a> AND <p b>;
        SELECT <aggs a a1> FROM <from a> <join> <from a1> USING (record_id) WHERE record_id > <vid a> AND record_id < <vid a>""",
    ),
    "cross join": (
        2,
        """SELECT <aggs a b> FROM <from a>, <from b> WHERE <p a> AND <p b> AND <p a b>;
        SELECT <aggs a b> FROM <from a> CROSS JOIN <from b> WHERE <p a b>;
        SELECT <aggs a b> FROM <from a> JOIN <from b> ON a.record_id < b.record_id AND <p a b>""",
    ),
    "semi or anti join": (
        4,
        """SELECT <cols a> FROM <from a> SEMI JOIN <from b> ON <wide a b> AND <p b> WHERE <p a>;
        SELECT <cols a> FROM <from a> ANTI JOIN <from b> ON <wide a b> AND <p b> WHERE <p a>;
        SELECT <cols a> FROM <from a> SEMI JOIN <from a1> USING (record_id, filename) WHERE <p a>""",
    ),
    "asof join": (
        2,
        """SELECT a.time_created::VARCHAR, b.time_created::VARCHAR, <x1 a> FROM <from a>
            ASOF JOIN <from b> ON a.computer = b.computer AND a.time_created >= b.time_created WHERE <p a>;
        SELECT a.record_id, b.record_id, b.level FROM <from a>
            ASOF LEFT JOIN (SELECT * <rows b>) AS b ON a.level = b.level AND a.record_id > b.record_id""",
    ),
    "positional join": (
        1,
        # Not over filters: in DuckDB, those pass large chunks on before small ones.
        "SELECT <cols a b> FROM <call a> AS a POSITIONAL JOIN <call b> AS b WHERE <p a b>",
    ),
    "set operation": (
        9,
        """SELECT <list> <rows a> <set> SELECT <list> <rows a1>;
        SELECT <list> <rows a> <set> SELECT <list> <rows b>;
        SELECT <list> <rows a> <set> SELECT <list> FROM <from a1>;
        SELECT count(*) <rows a> UNION ALL SELECT count(*) <rows a1>;
        SELECT <list> <rows a> UNION <all> BY NAME SELECT <list2> <rows b>;
        SELECT <aggs a a1> FROM (FROM <call a> AS a WHERE <p a>) AS a,
            (FROM <call a1> AS a1 WHERE <p a1> UNION ALL FROM <call a1>) AS a1 WHERE a.record_id = a1.record_id;
        (SELECT <list> <rows a> <set> SELECT <list> <rows a1>) <set> SELECT <list> FROM <from b>""",
    ),
    "cte once": (
        2,
        """WITH w AS <mat> (FROM <from a>) SELECT <cols a1> FROM w AS a1 WHERE <p a1>;
        WITH w AS <mat> (FROM <from a> WHERE <p a>) SELECT <aggs a1> FROM w AS a1 WHERE <p a1>""",
    ),
    "cte twice": (
        6,
        """WITH w AS <mat> (FROM <from a> WHERE <p a>) SELECT <cols a1 a2> FROM w AS a1 <join> w AS a2 ON <on a1 a2> WHERE <p a1>;
        WITH w AS <mat> (FROM <from a>) SELECT <list> FROM w AS a1 WHERE <p a1> <set> SELECT <list> FROM w AS a2 WHERE <p a2>;
        WITH w AS <mat> (FROM <from a>) SELECT <cols a1> FROM w AS a1
            WHERE a1.record_id IN (SELECT a2.event_record_id FROM w AS a2 WHERE <p a2>);
        WITH w AS <mat> (FROM <from a>), v AS <mat> (FROM <from a1> WHERE <p a1>)
            SELECT <aggs a2 a3> FROM w AS a2 JOIN v AS a3 ON <on a2 a3> JOIN w AS a4 ON <on a2 a4> WHERE <p a2 a3>""",
    ),
    "cte thrice": (
        2,
        """WITH w AS <mat> (FROM <from a>)
            SELECT <list> FROM w AS a1 WHERE <p a1> UNION ALL SELECT <list> FROM w AS a2 WHERE <p a2> <set> SELECT <list> FROM w;
        WITH w AS <mat> (FROM <from a> WHERE <p a>) SELECT (SELECT count(*) FROM w AS a1 WHERE <p a1>),
            (SELECT count(*) FROM w AS a2 WHERE <p a2>), (SELECT <agg a3> FROM w AS a3)""",
    ),
    "nested cte": (
        3,
        """WITH w AS <mat> (WITH u AS <mat> (FROM <from a>) FROM u AS a1 WHERE <p a1>) SELECT <aggs a2> FROM w AS a2 WHERE <p a2>;
        WITH u AS <mat> (FROM <from a>), w AS <mat> (FROM u AS a1 WHERE <p a1>)
            SELECT <cols a2 a3> FROM w AS a2 JOIN u AS a3 ON <on a2 a3> WHERE <p a3>;
        WITH u AS <mat> (FROM <from a>), w AS <mat> (FROM u AS a1 WHERE <p a1> UNION ALL FROM u AS a2 WHERE <p a2>)
            SELECT <aggs a3> FROM w AS a3""",
    ),
    "recursive cte": (
        1,
        """WITH RECURSIVE r(n) AS (SELECT min(a.event_id) <rows a>
            UNION SELECT b.event_id FROM <from b>, r WHERE b.event_id > r.n AND <p b>) SELECT count(*), max(n) FROM r""",
    ),
    "scalar subquery": (
        4,
        """SELECT (SELECT count(*) <rows a>), (SELECT count(*) <rows a1>), (SELECT <agg b> <rows b>);
        SELECT <cols a> <rows a> AND a.record_id > (SELECT min(b.record_id) <rows b>);
        SELECT <x1 a>, (SELECT <agg b> <rows b> AND b.event_id = a.event_id) <rows a>""",
    ),
    "in or exists": (
        6,
        """SELECT <cols a> <rows a> AND a.event_id <in> (SELECT b.event_id <rows b>);
        SELECT <aggs a> <rows a> OR a.record_id <in> (SELECT a1.record_id <rows a1>);
        SELECT <cols a> <rows a> AND <exists> (SELECT 1 <rows b> AND <wide a b>);
        SELECT <aggs a> <rows a> OR <exists> (SELECT 1 <rows a1> AND a1.record_id < a.record_id)""",
    ),
    "lateral": (
        3,
        """SELECT <x1 a>, n FROM <from a>, LATERAL (SELECT count(*) AS n <rows b> AND b.event_id = a.event_id) WHERE <p a>;
        SELECT <x1 a>, n FROM <from a>,
            LATERAL (SELECT b.record_id AS n <rows b> AND b.computer = a.computer ORDER BY n <dir> LIMIT 2) WHERE <p a>;
        SELECT <x1 a>, n FROM <from a>
            LEFT JOIN LATERAL (SELECT max(a1.record_id) AS n <rows a1> AND a1.record_id < a.record_id) ON true WHERE <p a>""",
    ),
    "window": (
        7,
        """SELECT <x1 a>, <x2 a>, row_number() OVER (PARTITION BY <g1 a> ORDER BY <x1 a>, <x2 a>) <rows a>;
        SELECT <x1 a>, <n1 a>, lag(<n1 a>) OVER w, sum(<n1 a>::HUGEINT) OVER (w ROWS 2 PRECEDING) <rows a>
            WINDOW w AS (ORDER BY <n1 a>, <x1 a>);
        SELECT <x1 a>, rank() OVER (PARTITION BY <g1 a> ORDER BY <x1 a> <dir>), min(<x1 a>) OVER (ORDER BY <x1 a>) <rows a>;
        SELECT * FROM (SELECT <g1 a> AS k, <x1 a> AS x, count(*) OVER (PARTITION BY <g1 a>) AS n <rows a>)
            WHERE k > <vg1 a> AND k < <vg1 a>""",
    ),
    "window over a partition": (
        5,
        """SELECT <x1 a>, count(*) OVER (PARTITION BY <g1 a>), min(<x2 a>) OVER (PARTITION BY <g1 a>) <rows a>;
        SELECT <g1 a>, count(DISTINCT <x1 a>) OVER (PARTITION BY <g1 a>) <rows a>;
        SELECT <x1 a>, sum(<n1 a>::HUGEINT) OVER (PARTITION BY <g1 a>) FROM <call a> AS a WHERE <p a>;
        SELECT <x1 a>, count(*) OVER (), max(<n1 a>) OVER () <rows a>""",
    ),
    "qualify": (
        4,
        """SELECT <g1 a>, <x1 a> <rows a> QUALIFY row_number() OVER (PARTITION BY <g1 a> ORDER BY <x1 a> <dir>) <= <k>;
        SELECT <g1 a>, <x1 a> <rows a> QUALIFY count(*) OVER (PARTITION BY <g1 a>) > <k>;
        SELECT <g1 a>, <x1 a> <rows a> QUALIFY <x1 a> = max(<x1 a>) OVER (PARTITION BY <g1 a>)""",
    ),
    "pivot": (
        2,
        """PIVOT (SELECT a.level, a.channel, <x1 a> AS x <rows a>) ON level IN (0, 4) USING count(*), max(x) GROUP BY channel;
        UNPIVOT (SELECT a.event_id, a.process_id, a.thread_id <rows a>) ON process_id, thread_id""",
    ),
    "unnest": (1, "SELECT name, count(*) FROM (SELECT unnest(map_keys(a.event_data)) AS name <rows a>) GROUP BY ALL"),
}
QUERIES = {name: (weight, forms(text)) for name, (weight, text) in QUERIES.items()}
# DuckDB copies the plan of a CTE below a limit. So some queries get a limit, unless they match NO_LIMIT.
LIMIT = " ORDER BY ALL LIMIT 20"
NO_LIMIT = r"PIVOT|ORDER BY ALL|LIMIT <k>|DISTINCT ON"
# Predicates that DuckDB turns into a join, which loses the order of rows.
JOINED = r"SELECT|= ANY|<many>"
# The forms of a source, and their weights. {t} is the call and {a} the alias; {i} and {j} are inner aliases.
SOURCES = {
    "{t} AS {a}": 70,
    "(SELECT * FROM {t} AS {i} WHERE <p {i}>) AS {a}": 10,
    "(FROM {t} AS {i} WHERE <p {i}> UNION ALL FROM {t} AS {j} WHERE <p {j}>) AS {a}": 4,
    "(FROM {t} AS {i} WHERE <p {i}> EXCEPT ALL FROM {t} AS {j} WHERE <p {j}>) AS {a}": 2,
    "(SELECT DISTINCT * FROM {t} AS {i} WHERE <p {i}>) AS {a}": 2,
    "(SELECT {i}.* FROM {t} AS {i} SEMI JOIN {t} AS {j} ON {i}.record_id = {j}.record_id AND <p {j}>) AS {a}": 4,
}
# The forms of an aggregate. {x} is any operand, {n} a number, {p} a predicate.
AGGREGATES = forms("""
    count(*); count({x}); count(DISTINCT {x}); min({x}); max({x}); bit_xor(hash({x})); list_sort(list(DISTINCT {x}));
    sum({n}::HUGEINT); string_agg({x}::VARCHAR, ',' ORDER BY {x}::VARCHAR); quantile_disc({n}, 0.5);
    count(*) FILTER (WHERE {p}); bool_or({x} IS NULL)""")
# The values of the other tokens. <on a b> joins few rows, <wide a b> may join many.
WORDS = {
    "join": ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"],
    "set": ["UNION", "UNION ALL", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"],
    "mat": ["", "", "MATERIALIZED", "NOT MATERIALIZED"],
    "all": ["", "ALL"],
    "dir": ["", "ASC", "DESC", "ASC NULLS FIRST", "DESC NULLS LAST"],
    "in": ["IN", "IN", "NOT IN"],
    "exists": ["EXISTS", "EXISTS", "NOT EXISTS"],
    "on": forms("""
        {a}.record_id = {b}.record_id; {a}.record_id = {b}.record_id AND {a}.filename = {b}.filename;
        {a}.time_created = {b}.time_created; {a}.record_id = {b}.record_id AND {a}.provider_guid = {b}.provider_guid;
        {a}.record_id IS NOT DISTINCT FROM {b}.record_id; {a}.record_id + 1 = {b}.record_id;
        {a}.record_id = {b}.event_record_id AND {a}.computer = {b}.computer"""),
}
WORDS["wide"] = WORDS["on"] + forms("""
    {a}.event_id = {b}.event_id; {a}.level = {b}.level AND {a}.record_id < {b}.record_id; {a}.event_data = {b}.event_data""")

# ---- How a query is run

# The weight and the steps of each mode:
# - {q}: the query. {$q}: with parameters for its constants. {mq}: with parameters of a macro.
# - {vq}: the query over v0, v1, ... for its sources. {o}: another query over the same sources.
# - {values}: the values of the parameters. {others}: other values.
# A step with {i} runs once per source.
MODES = {
    "plain": (50, "{q}"),
    "twice": (6, "{q}; {q}"),
    "parameters": (8, "{$q}; {$q}"),
    "prepared": (8, "PREPARE s AS {$q}; EXECUTE s({values}); {o}; EXECUTE s({others}); EXECUTE s({values}); DEALLOCATE s"),
    "prepared and not run": (3, "PREPARE s AS {$q}; {o}; {q}; DEALLOCATE s"),
    "prepared and run last": (3, "PREPARE s AS {$q}; PREPARE r AS {o}; EXECUTE r; EXECUTE s({values}); EXECUTE r; DEALLOCATE s"),
    "digest": (6, "SELECT count(*), sum(hash(q)::HUGEINT) FROM ({q}) AS q"),
    "view": (4, "CREATE OR REPLACE TEMP VIEW v AS {q}; FROM v; SELECT (SELECT count(*) FROM v), * FROM v; FROM v"),
    "views of the sources": (4, "CREATE OR REPLACE TEMP VIEW v{i} AS FROM {t{i}}; {vq}"),
    "table macro": (
        4,
        "CREATE OR REPLACE TEMP MACRO m({names}) AS TABLE {mq}; FROM m({values}); FROM m({others}); FROM m({values})",
    ),
    "scalar macro": (2, "CREATE OR REPLACE TEMP MACRO n() AS (SELECT count(*) FROM ({q})); SELECT n(), n()"),
    "ctes of the sources": (4, "WITH {ctes} FROM ({vq})"),
    "cte": (4, "WITH q AS ({q}) SELECT count(*), (SELECT sum(hash(q)::HUGEINT) FROM q) FROM q"),
    "beside another": (
        6,
        """SELECT count(*), sum(hash(q)::HUGEINT) FROM ({q}) AS q
        UNION ALL SELECT count(*), sum(hash(q)::HUGEINT) FROM ({o}) AS q""",
    ),
    "subqueries": (3, "SELECT (SELECT count(*) FROM ({q})), (SELECT count(*) FROM ({o})), (SELECT count(*) FROM ({q}))"),
    "temporary table": (2, "CREATE OR REPLACE TEMP TABLE r AS {q}; FROM r"),
}
MODES = {name: (weight, forms(text)) for name, (weight, text) in MODES.items()}
