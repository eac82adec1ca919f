"""A minimal violation of every rule for single definitions: the rule, the definition, and part of the error message.

The mark ¶ is at the position that the error must report.
"""

from __future__ import annotations

from tests.support.small_definitions import data, head

V = '"validVersions": "0-1"'
F = '"flexibleVersions": "0+"'


def f(keys: str, name: str = "A", kind: str = "int32", versions: str = "0+") -> str:
    """Return the text of a field, with further keys."""
    return f'{{"name": "{name}", "type": "{kind}", "versions": "{versions}"{", " if keys else ""}{keys}}}'


def default(kind: str, text: str, keys: str = "") -> str:
    """Return a message whose only field has a default."""
    more = f", {keys}" if keys else ""
    inner = ', "fields": [{"name": "X", "type": "int8", "versions": "0+"}]' if kind.endswith("S") else ""
    return data(f'{{"name": "A", "type": "{kind}", "versions": "0+", "default": ¶{text}{more}{inner}}}')


X = '{"name": "X", "type": "int8", "versions": "0+"}'
S = f'"fields": [{X}]'
TAGGED = '"taggedVersions": "0+"'

BROKEN = [
    # text and shape
    ("V1", head(f'{V}, {F}, ¶"foo": 1'), "unknown key 'foo'"),
    ("V1", data(f('¶"nullable": "0+"')), "unknown key 'nullable'; the keys here are name, type, versions"),
    ("V1", data("", f'{{"name": "S", "versions": "0+", ¶"type": "int8", {S}}}'), "unknown key 'type'"),
    ("V2", head(f"{V}, {F}") + " ¶{}", "unexpected '{' after the end"),
    ("V3", '{"name": ¶}', "expected a value, found '}'"),
    ("V3", '¶# comment\n{"name": "Sample"}', "expected a value, found '#'"),
    ("V3", '{"name": "Sample", ¶}', "a comma before '}'"),
    ("V3", '{"fields": [1, ¶]}', "a comma before ']'"),
    ("V3", "{¶'name': 1}", 'expected a key in double quotes, found "\'"'),
    ("V3", '{"name" ¶"Sample"}', "expected ':'"),
    ("V3", '{"name": "Sample" ¶"type": "data"}', "expected ',' or '}'"),
    ("V3", '¶["name"]', "one JSON object"),
    ("V3", '{"name": "Sample",\n "type": "data",\n ¶"name": "Other"}', "'name' is repeated"),
    ("V3", '{"name": ¶"Sam', "Unterminated string"),
    ("V3", '{"name": "Sample" ¶/* no end', "this comment has no end"),
    ("V3", '{"name": "Sample"¶', "found the end of the text"),
    ("V3", '{"fields": ' + "[" * 200, "nested deeper"),
    ("V3", data("¶3"), "expected an object, found '3'"),
    ("V4", '¶{"type": "data", "validVersions": "0"}', "missing required key 'name'"),
    ("V4", '¶{"name": "Sample"}', "missing required key 'type'"),
    ("V4", data('¶{"name": "A", "versions": "0+"}'), "missing required key 'type'"),
    ("V4", data('{"name": ¶null, "type": "int8", "versions": "0+"}'), "missing required key 'name'"),
    ("V5", '{"name": "Sample", "type": ¶"Request"}', "type is 'Request', not one of request, response"),
    ("V5", head(f'"apiKey": 1, {V}, {F}, "listeners": ¶["kafka"]', kind="request"), "listeners has 'kafka'"),
    ("V5", data(f('"entityType": ¶"foo"')), "entityType is 'foo', not one of unknown, transactionalId"),
    ("V6", head(f'{V}, {F}, "apiKey": ¶40000'), "apiKey 40000 is out of range for int16"),
    ("V6", head(f'{V}, {F}, "apiKey": ¶{"9" * 5000}'), "out of range for int16"),
    ("V6", data(f('"tag": ¶1.5')), "tag must be a whole number, not '1.5'"),
    ("V6", data(f('"ignorable": ¶"yes"')), "ignorable must be true or false, not 'yes'"),
    ("V6", data(f('"default": ¶[]')), "default must be text, not a list"),
    # versions
    ("V7", '¶{"name": "Sample", "type": "data"}', "validVersions is not stated"),
    ("V7", head(f'"validVersions": ¶"  ", {F}'), "validVersions is not stated"),
    ("V7", data('¶{"name": "A", "type": "int8"}'), "the versions of 'A' are not stated"),
    ("V7", data("", '¶{"name": "S", "fields": []}'), "the versions of 'S' are not stated"),
    ("V9", head(f'"validVersions": ¶"0+", {F}'), "validVersions 0+ has no upper bound"),
    ("V9", head(f'"validVersions": ¶"0-32767", {F}'), "no upper bound"),
    ("V10", data(f("", versions="1 - 3").replace('"1 - 3"', '¶"1 - 3"')), "versions: bad version range '1 - 3'"),
    *[
        ("V10", data(f(f'"nullableVersions": ¶"{text}"')), f"nullableVersions: bad version range '{text}'")
        for text in ("1-", "+", "1-2-3", "0++", "1.0", "NONE", "40000", "0-40000", "+1", "x")
    ],
    ("V11", head(f'"validVersions": ¶"-1", {F}'), "'-1'"),
    ("V11", head(f'"validVersions": ¶"-1-3", {F}'), "'-1-3'"),
    ("V11", data(f('"nullableVersions": ¶-3')), "'-3'"),
    ("V12", head(V), "flexibleVersions is not stated"),
    ("V12", head(f'{V}, "flexibleVersions": ¶null'), "flexibleVersions is not stated"),
    ("V13", head(f'{V}, "flexibleVersions": ¶"0-2"'), "must be 'none' or open-ended, not 0-2"),
    ("V13", head(f'{V}, "flexibleVersions": ¶"1"'), "must be 'none' or open-ended, not 1"),
    ("V14", head(f'"validVersions": ¶"5-3", {F}'), "5 is above 3"),
    ("V15", head(f'{V}, {F}, "deprecatedVersions": ¶"0-2"'), "deprecatedVersions 0-2 reach beyond validVersions 0-1"),
    # names
    *[
        ("V16", data(f'{{"name": ¶"{name}", "type": "int8", "versions": "0+"}}'), f"invalid field name '{name}'")
        for name in ("_x", "1x", "x_y", "x-y", "", "é", "a b")
    ],
    ("V17", data(f("", "x", versions="0-1") + ",\n" + f("", "x").replace('"x"', '¶"x"')), "Sample already has a field"),
    (
        "V17",
        data(f(f'"fields": [{X}, {{"name": ¶"X", "type": "int8", "versions": "0+"}}]', kind="S")),
        "S already has a field named 'X'",
    ),
    ("V18", data(f("", "abc") + "," + f("", "Abc").replace('"Abc"', '¶"Abc"')), "becomes 'abc'"),
    ("V18", data(f("", "groupID") + "," + f("", "GroupId").replace('"GroupId"', '¶"GroupId"')), "becomes 'group_id'"),
    ("V18", data(f("", "aB") + "," + f("", "AB").replace('"AB"', '¶"AB"')), "becomes 'aB'"),
    # types
    *[
        ("V19", data(f("", kind=kind).replace(f'"{kind}"', f'¶"{kind}"')), f"unknown type '{kind.strip('[]')}'")
        for kind in ("int", "uint8", "uint64", "varint", "array", "", "[]int")
    ],
    ("V20", data('{"name": "A", "type": ¶"[]", "versions": "0+"}'), "names no element type"),
    ("V21", data('{"name": "A", "type": ¶"[][]int32", "versions": "0+"}'), "array of arrays"),
    ("V22", data('{"name": "A", "type": ¶"[]records", "versions": "0+"}'), "array of records"),
    ("V23", data('{"name": "A", "type": ¶"[]bytes", "versions": "0+"}'), "array of bytes"),
    (
        "V24",
        data('{"name": "A", "type": ¶"INT32", "versions": "0+"}'),
        "'INT32' has no definition; did you mean 'int32'",
    ),
    ("V24", data('{"name": "A", "type": ¶"[]Topic", "versions": "0+"}'), "the struct 'Topic' has no definition"),
    ("V24", data(f('"fields": []', kind="S").replace('"S"', '¶"S"')), "the struct 'S' has no definition"),
    ("V25", data('{"name": "A", "type": ¶"List<int32>", "versions": "0+"}'), "'List<int32>' cannot name a struct"),
    ("V25", data('{"name": "A", "type": ¶"[]Struct", "versions": "0+"}'), "generated code uses that name"),
    ("V25", '{"name": ¶"sample", "type": "data", "validVersions": "0"}', "'sample' cannot name a message"),
    ("V25", data("", f'{{"name": ¶"S-T", "versions": "0+", {S}}}'), "'S-T' cannot name a struct"),
    ("V26", data(f(f'"fields": ¶[{X}]')), "int32 is neither a struct nor an array of structs"),
    ("V27", data(f(f'"fields": ¶[{X}]', kind="[]int32")), "an array of scalars"),
    ("V28", data(f'¶{{"name": "A", "type": "S", {TAGGED}, "tag": 0, {S}}}'), "the versions of 'A' are not stated"),
    # nullability
    *[
        ("V29", data(f('"nullableVersions": ¶"0+"', kind=kind)), f"type {kind} cannot be null")
        for kind in ("bool", "int8", "int16", "int32", "int64", "uint16", "uint32", "float64", "uuid")
    ],
    # tags
    ("V30", data(f(f'"tag": ¶-1, {TAGGED}')), "tag -1 is negative"),
    ("V31", data(f('"tag": ¶0')), "tag 0 is given without taggedVersions"),
    ("V31", data(f('"tag": ¶0, "taggedVersions": "none"')), "without taggedVersions"),
    ("V32", data(f('"taggedVersions": ¶"0+"')), "taggedVersions 0+ are given without a tag"),
    ("V33", data(f('"taggedVersions": ¶"0-2", "tag": 0')), "taggedVersions must be 'none' or open-ended, not 0-2"),
    ("V34", data(f('"taggedVersions": ¶"0+", "tag": 0', versions="0-2")), "reach beyond versions 0-2"),
    ("V35", data(f(f'{TAGGED}, "tag": 0, "nullableVersions": ¶"1+"', kind="string")), "only 1+ can be null"),
    ("V36", data(f(f'"tag": 0, {TAGGED}') + "," + f(f'"tag": ¶0, {TAGGED}', "B")), "already has a field with tag 0"),
    ("V37", data(f(f'"tag": ¶1, {TAGGED}')), "tag 1 is used, but not tag 0"),
    ("V37", data(f(f'"tag": ¶3, {TAGGED}') + "," + f(f'"tag": 0, {TAGGED}', "B")), "tag 3 is used, but not tag 1"),
    (
        "V38",
        data(f(f'"fields": [{f(f"{TAGGED}, #tag#: 0, #mapKey#: ¶true".replace("#", chr(34)), "K")}]', kind="[]S")),
        "a map key cannot be tagged",
    ),
    ("V39", data(f('"tag": 0, "taggedVersions": ¶"0+"'), flexible="1+"), "reach beyond the flexible versions 1+"),
    (
        "V39",
        data(f('"tag": 0, "taggedVersions": ¶"0+", "flexibleVersions": "none"', kind="string")),
        "reach beyond the flexible versions none",
    ),
    ("V40", data(f('"tag": 0, "taggedVersions": ¶"0+"', kind="records")), "records cannot be tagged"),
    # other field keys
    *[
        ("V42", data(f('"flexibleVersions": ¶"none"', kind=kind)), f"flexibleVersions of its own, not {kind}")
        for kind in ("int32", "[]string", "records")
    ],
    (
        "V43",
        data(f('"flexibleVersions": ¶"0+"', kind="string"), flexible="1+"),
        "beyond the message's flexibleVersions",
    ),
    *[
        ("V44", data(f('"zeroCopy": ¶true', kind=kind)), f"only bytes can be zero-copy, not {kind}")
        for kind in ("int32", "records", "string", "[]int8")
    ],
    ("V45", data(f('"entityType": ¶"topicName"')), "entity type topicName goes with string, not int32"),
    ("V45", data(f('"entityType": ¶"brokerId"', kind="[]int64")), "goes with int32, not []int64"),
    ("V45", data(f('"entityType": ¶"producerId"')), "goes with int64"),
    # structs
    (
        "V46",
        data(
            f'{{"name": "A", "type": "S", "versions": "0-2", "fields": [{{"name": "B", "type": "T", "versions": ¶"5+",'
            f" {S}}}]}}"
        ),
        "versions 5+ have nothing in common with 0-2 of S",
    ),
    ("V46", data(f'{{"name": "A", "type": "S", "versions": ¶"none", {S}}}'), "nothing in common with 0-9 of Sample"),
    ("V47", data(f(S, kind="S") + ",\n" + f(S, "B", kind="S").replace('"S"', '¶"S"')), "already defined in line 2"),
    ("V47", data(f(S, kind="S") + ",\n" + f("", "B", kind="S").replace('"S"', '¶"S"')), "make it a common struct"),
    (
        "V48",
        data("", f'{{"name": "S", "versions": "0+", {S}}}, {{"name": ¶"S", "versions": "0+", {S}}}'),
        "the common struct 'S' is defined twice",
    ),
    (
        "V49",
        data(f(f'"fields": ¶[{X}]', kind="S"), f'{{"name": "S", "versions": "0+", {S}}}'),
        "'S' is a common struct",
    ),
    ("V50", data("", f'{{"name": ¶"s", "versions": "0+", {S}}}'), "'s' must start with an upper-case letter"),
    (
        "V51",
        data(
            "",
            f'{{"name": "S", "versions": "0+", "fields": [{f(f"#fields#: ¶[{X}]".replace("#", chr(34)), kind="T")}]}}',
        ),
        "the common struct S defines 'T' inside",
    ),
    (
        "V52",
        data(
            f(S, kind="T"), '{"name": "S", "versions": "0+", "fields": [{"name": "B", "type": ¶"T", "versions": "0+"}]}'
        ),
        "the common struct S uses 'T', which a field defines",
    ),
    (
        "V53",
        data("", '{"name": "S", "versions": "0+", "fields": [{"name": "B", "type": ¶"[]S", "versions": "0+"}]}'),
        "recursive struct S -> S",
    ),
    (
        "V53",
        data(
            f("", kind="S"),
            '{"name": "S", "versions": "0+", "fields": [{"name": "B", "type": "T", "versions": "0+"}]},\n'
            '{"name": "T", "versions": "0+", "fields": [{"name": "B", "type": ¶"S", "versions": "0+"}]}',
        ),
        "recursive struct S -> T -> S",
    ),
    (
        "V54",
        data(f("", kind="S").replace('"0+"', '¶"0+"'), f'{{"name": "S", "versions": "1+", {S}}}'),
        "versions 0-9 of A reach beyond 1+ of S",
    ),
    (
        "V54",
        data(f("", kind="S").replace('"0+"', '¶"0+"'), f'{{"name": "S", "versions": "0-2", {S}}}'),
        "versions 0-9 of A reach beyond 0-2 of S",
    ),
    ("V55", data(f(S, kind="Sample").replace('"Sample"', '¶"Sample"')), "has the message's own name"),
    ("V55", data("", f'{{"name": ¶"Sample", "versions": "0+", {S}}}'), "has the message's own name"),
    ("V56", data(f('"mapKey": ¶true')), "a map key must be in a struct"),
    # defaults
    ("V57", default("bool", '"yes"'), "invalid default 'yes' for bool field A"),
    ("V57", default("bool", "1"), "neither true nor false"),
    *[
        ("V58", default(kind, f'"{text}"'), f"invalid default '{text}' for {kind} field A: {reason}")
        for kind, text, reason in (
            ("int8", "0xff", "out of range, int8 holds -128 to 127"),
            ("int8", "128", "out of range"),
            ("int16", "-32769", "out of range"),
            ("int32", "0x80000000", "out of range"),
            ("int64", "9223372036854775808", "out of range"),
            ("int64", "9" * 5000, "out of range"),
            ("int32", "null", "it is neither a decimal number nor 0x"),
            ("int32", " 1", "it is neither a decimal number nor 0x"),
            ("int32", "1_000", "it is neither a decimal number nor 0x"),
            ("int32", "0X1", "it is neither a decimal number nor 0x"),
            ("int32", "1.0", "it is neither a decimal number nor 0x"),
            ("int32", "-0x1", "it is neither a decimal number nor 0x"),
            ("int32", "0x-1", "it is neither a decimal number nor 0x"),
            ("int32", "0x", "it is neither a decimal number nor 0x"),
            ("int32", "١", "it is neither a decimal number nor 0x"),
        )
    ],
    ("V59", default("uint16", '"65536"'), "out of range, uint16 holds 0 to 65535"),
    ("V59", default("uint32", '"4294967296"'), "out of range, uint32 holds 0 to 4294967295"),
    ("V59", default("uint16", "-1"), "out of range"),
    ("V60", default("int32", '"010"'), "a leading zero could mean octal"),
    ("V60", default("int32", '"08"'), "a leading zero could mean octal"),
    *[("V61", default("float64", f'"{text}"'), "it is not a number") for text in ("abc", "1,5", "0x1", "nan", "--1")],
    ("V62", default("uuid", '"AAAAAAAAAAAAAAAAAAAAA"'), "not 16 bytes"),
    ("V62", default("uuid", '"AAAAAAAAAAAAAAAAAAAAAAAA"'), "not 16 bytes"),
    ("V62", default("uuid", '"00000000-0000-0000-0000-000000000001"'), "not 16 bytes"),
    ("V64", default("bytes", '"x"'), "it can only be empty or null"),
    ("V64", default("S", '"{}"'), "it can only be empty or null"),
    ("V64", default("[]S", '"[]"'), "it can only be empty or null"),
    ("V64", default("[]int32", "0"), "it can only be empty or null"),
    ("V65", default("records", '"abc"'), "records always start as null"),
    *[
        ("V66", default(kind, '"null"'), "it cannot be null in all its versions 0+, only in none")
        for kind in ("string", "bytes", "S", "[]S", "[]int32")
    ],
    ("V66", default("string", '"null"', '"nullableVersions": "0-9"'), "in all its versions 0+, only in 0-9"),
    # the complete message
    ("V67", head(f'{V}, {F}, "listeners": ¶["broker"]'), "only a request has listeners, this is a data"),
    ("V68", head(f'{V}, {F}, "latestVersionUnstable": ¶true'), "only a request has an unstable latest version"),
    *[
        ("V69", head(f"{V}, {F}", kind=kind), f"a {kind} needs an apiKey")
        for kind in ("request", "response", "metadata", "coordinator-value")
    ],
    ("K1", head(f'"apiKey": 1, "validVersions": ¶"0-1", {F}', kind="coordinator-key"), "has version 0 alone, not 0-1"),
    (
        "K1",
        head('"apiKey": 1, "validVersions": "0", "flexibleVersions": ¶"0+"', kind="coordinator-key"),
        "never flexible, not 0+",
    ),
    ("H1", head(f'{V}, {F}, "headerVersions": ¶{{"0+": "1"}}'), "a data has no headerVersions"),
    *[
        ("H1", head(f'"apiKey": 1, {V}, {F}, "headerVersions": ¶{text}', kind="request"), reason)
        for text, reason in (
            ('"1"', "must be an object"),
            ('{"0": "x"}', "a whole number"),
            ('{"1+": "1"}', "goes on at 1+, expected 0"),
            ('{"0-1": "1", "3+": "2"}', "goes on at 3+, expected 2"),
            ('{"0-1": "1"}', "must be open-ended"),
            ("{}", "must be open-ended"),
        )
    ],
    ("X1", head(f'{V}, {F}, "supportedErrors": ¶["NONE"]'), "must be an object"),
    ("X1", head(f'{V}, {F}, "supportedErrors": ¶{{"none": "0+"}}'), "'none' is not the name of an error"),
    ("X1", head(f'{V}, {F}, "supportedErrors": {{"NONE": ¶["0+"]}}'), "NONE must be text, not a list"),
    ("V10", head(f'{V}, {F}, "supportedErrors": {{"NONE": ¶"all"}}'), "supportedErrors NONE: bad version range 'all'"),
]
