"""What the paper counted by eye, eight images a setting: Tables 1 and 2 (v1, v2), and what is known of version 3.

Key: (conditioner, labels, net), then the most objects of a training image; "9+(0-2)": nine, and up to two extra ones.
"""

Kind = tuple[str, str, str]
EXP1, EXP2, EXP2L = ("grid", "all", "global"), ("grid", "one", "global"), ("grid", "one", "local")
EXP3, EXP3L, COLOR = ("list", "all", "global"), ("list", "all", "local"), ("color", "all", "global")
RANDOM, DROP_ONE = ("grid", "random", "global"), ("grid", "all_but_one", "global")

K_MAX: dict[Kind, dict[int, str]] = {
    EXP1: {1: "1", 2: "5", 3: "9 (v3: 7)", 4: "10", 5: "10", 6: "11"},
    EXP2: {1: "1", 2: "1+(0-1)", 3: "1+(0-2) (v3: 2)", 4: "1+(0-3)", 5: "1+(0-4) (v3: 3)", 6: "1+(0-5)"},
    EXP2L: {1: "6 (v3: 5)", 3: "9+(0-2) (v3: 9)", 5: "10+(0-2) (v3: 10)"},
    EXP3: {3: "(v3: 3)"},
    EXP3L: {3: "(v3: 9)"},
    COLOR: {1: "1", 3: "4", 5: "7"},
    RANDOM: {2: "3", 3: "5", 4: "6", 5: "8", 6: "9"},
    DROP_ONE: {3: "3+(0-1)", 4: "8+(0-1)", 5: "9+(0-1)", 6: "10+(0-1)"},
}
NONE_ASKED: dict[Kind, dict[int, str]] = {  # objects typically drawn at K = 0
    EXP1: {1: "0-1", 2: "0", 3: "0", 4: "0", 5: "0", 6: "0"},
    EXP2: {2: "0-2", 3: "0-3", 4: "1-4", 5: "0-5", 6: "1-6"},
    RANDOM: {2: "0-1", 3: "0-3", 4: "0-4", 5: "0-4", 6: "0-4"},
    DROP_ONE: {3: "0-1", 4: "0-1", 5: "0-1", 6: "0-1"},
}
