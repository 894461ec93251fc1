"""Class sizes, vectors, options, settings files and answers that cannot be used."""

import pickle
import shlex

import numpy as np

from helpers.bad_inputs.case import (
    LABEL,
    LONG,
    PREDICT,
    TREE,
    Case,
    Content,
    case,
    folder,
    numpy_archive,
    numpy_file,
    saved_sparse,
    zipped,
)


def stated(*sizes: str) -> str:
    return LABEL + " ".join(f"--prior {shlex.quote(size)}" for size in sizes)


PRIORS = {
    "no value": case(stated("travel"), r"--prior must be NAME=SIZE.*'travel'"),
    "no name": case(stated("=0.2"), r"--prior must be NAME=SIZE.*'=0\.2'"),
    "nothing": case(stated(""), r"--prior must be NAME=SIZE.*''"),
    "a word": case(stated("travel=much"), r"--prior travel=much.*'much'"),
    "half a row": case(
        stated("travel=1.5"), r"--prior travel=1\.5.*1\.5.*neither a fraction nor a whole number of rows"
    ),
    "twice": case(stated("travel=0.2", "travel=0.3"), r"'travel' twice; keep one"),
    "several in one": case(stated("travel=0.4,banking=0.1"), r"one --prior for each class"),
    "three numbers": case(stated("travel=1:2:3"), r"--prior travel=1:2:3.*a range such as"),
    "negative": case(stated("travel=-0.1"), r"--prior travel=-0\.1"),
    "infinite": case(stated("travel=inf"), r"--prior travel=inf"),
    "NaN": case(stated("travel=nan"), r"--prior travel=nan"),
    "exchanged": case(stated("travel=0.5:0.1"), r"--prior travel=0\.5:0\.1.*low end is above.*Swap"),
    "more than all": case(
        stated("travel=0.9", "banking=0.9", "auto_and_commute=0.2"), r"class sizes.*sum to 2, not 1.*Divide them"
    ),
    "less than all": case(
        stated("travel=0.1", "banking=0.1", "auto_and_commute=0.1"),
        r"class sizes.*sum to 0\.3, not 1.*Divide them",
    ),
    "more than all by two": case(
        stated("travel=0.7", "banking=0.7"),
        r"class sizes.*70% and 70% are 140% together, more than all rows\. Lower",
    ),
    "low ends too high": case(
        stated("travel=0.6:0.9", "banking=0.6:0.9"), r"class sizes.*at least 116 rows.* 96 .*Lower"
    ),
    "high ends too low": case(
        stated("travel=0:0.1", "banking=0:0.1", "auto_and_commute=0:0.1"),
        r"class sizes.*at most 27 of the 96 rows.*Raise",
    ),
    "too many rows": case(stated("travel=5000"), r"--prior gives 'travel' 5000 rows.*only 96"),
    "rows that do not add up": case(
        stated("travel=10", "banking=10", "auto_and_commute=10"),
        r"count 30 rows, but there are 96 rows to label and 120 with the labelled ones.*Correct",
    ),
    "fewer rows than labels": case(
        stated("travel=2", "banking=60", "auto_and_commute=58"),
        r"give 'travel' 2 of them, but \d+ are labelled so already",
    ),
    "from a fraction to rows": case(stated("travel=0.5:40"), r"--prior travel=0\.5:40.*Use one unit"),
    "thousands": case(stated("travel=1,200"), r"--prior travel=1,200.*thousands.*without a comma"),
    "more than all rows": case(stated("travel=120%"), r"--prior travel=120% is '120%', more than all rows"),
    "exact range": case(stated("travel==5:9"), r"--prior travel==5:9 must be a fraction.*'=5:9'"),
    "keyword and sizes": case(stated("equal", "travel=0.3"), r"--prior equal is about all classes.*keep one"),
    "unknown class": case(stated("football=0.2"), r"no row is labelled 'football'.*Label a row.*'banking'"),
    "nearly a class": case(stated("traval=0.2"), r"'traval'.*Did you mean 'travel'"),
    "branch of flat names": Case(
        "label a.csv -o out.csv --flat --prior hot=0.5", r"'hot'.*'hot/coffee'.*sizes", {"a.csv": TREE}
    ),
    "missing file": case(stated("p.toml"), r"p\.toml does not exist.*Check"),
    "a folder": case(stated("p.toml"), r"p\.toml cannot be read.*Name a file", p__toml=folder),
    "broken TOML": case(stated("p.toml"), r"p\.toml is not valid TOML.*line 1.*Correct", p__toml="travel = = 1"),
    "broken JSON": case(stated("p.json"), r"p\.json is not valid JSON: .*Correct", p__json='{"travel": 1'),
    "JSON list": case(stated("p.json"), r"p\.json must map each class", p__json="[1, 2]"),
    "JSON key twice": case(stated("p.json"), r"p\.json.*twice", p__json='{"travel": 1, "travel": 2}'),
    "JSON of another kind": case(
        stated("p.json"), r"p\.json, class 'travel',.*must be a fraction", p__json='{"travel": {"low": 1}}'
    ),
    "class twice": case(
        stated("p.csv"), r"p\.csv, line 2,.*'travel' a second time.*Remove one", p__csv="travel,1\ntravel,2\n"
    ),
    "four cells": case(stated("p.csv"), r"p\.csv, line 1, must be class, size", p__csv="travel,1,2,3\n"),
    "a word in a file": case(stated("p.csv"), r"p\.csv, line 2,.*'much'", p__csv="class,share\ntravel,much\n"),
    "Latin-1": case(stated("p.csv"), r"p\.csv is not UTF-8.*Save", p__csv=b"travel,1\nm\xe9tro,2\n"),
    "empty": case(stated("p.csv"), r"p\.csv.*empty", p__csv=""),
    "empty TOML": case(stated("p.toml"), r"p\.toml must map each class", p__toml=""),
    "CSV with a broken quote": case(stated("p.csv"), r"p\.csv, line 1, must be class, size", p__csv='"travel,1\n'),
    "unknown class for queue": case("queue documents.csv -o q.csv --prior football=0.2", r"'football'.*Label a row"),
    "check": case("check documents.csv --prior travel=much", r"--prior travel=much.*'much'"),
}


def with_vectors(content: Content, expected: str, name: str = "v.npy") -> Case:
    return Case(LABEL + f"--vectors {name}", expected, {name: content})


VECTORS = {
    "missing": case(LABEL + "--vectors nope.npy", r"nope\.npy does not exist.*Check"),
    "another suffix": case(LABEL + "--vectors v.txt", r"'v\.txt' is neither.*columns are id, text", v__txt="1 2 3"),
    "text column": case(LABEL + "--vectors text", r"'text' of documents\.csv must contain lists.*Name"),
    "too few": with_vectors(numpy_file(np.ones((7, 3))), r"v\.npy has 7 rows, but documents\.csv has 120.*Provide"),
    "one-dimensional": with_vectors(numpy_file(np.ones(120)), r"v\.npy must contain a matrix.*Save"),
    "three-dimensional": with_vectors(numpy_file(np.ones((120, 2, 2))), r"v\.npy must contain a matrix.*Save"),
    "no columns": with_vectors(numpy_file(np.ones((120, 0))), r"v\.npy must contain a matrix.*Save"),
    "NaN": with_vectors(numpy_file(np.where(np.eye(120) > 0, np.nan, 1)), r"row 1 of 'v\.npy' contains nan.*again"),
    "infinity": with_vectors(
        numpy_file(np.where(np.arange(240).reshape(120, 2) == 9, np.inf, 1)), r"row 5 of 'v\.npy' contains inf.*again"
    ),
    "pickled objects": with_vectors(
        numpy_file(np.array([{"a": 1}] * 120, dtype=object)), r"v\.npy cannot be read.*Save"
    ),
    "pickle": with_vectors(pickle.dumps(np.ones((120, 2))), r"v\.npy cannot be read.*Save"),
    "texts": with_vectors(numpy_file(np.full((120, 2), "a")), r"v\.npy must contain numbers.*Save"),
    "cut": with_vectors(numpy_file(np.ones((120, 2)))[:200], r"v\.npy cannot be read.*Save"),
    "two arrays": with_vectors(numpy_archive(a=np.ones((120, 2)), b=np.ones(3)), r"v\.npz.*2 arrays.*Save", "v.npz"),
    "another archive": with_vectors(zipped("x"), r"v\.npz cannot be read.*'x' is not an array.*Save", "v.npz"),
    "sparse with too few rows": with_vectors(saved_sparse(9), r"v\.npz has 9 rows.*Provide", "v.npz"),
    "lists of two lengths": Case(
        "label a.jsonl -o out.csv --vectors v",
        r"'v' of a\.jsonl.*row 2 has length 1 instead of 2.*Complete",
        {
            "a.jsonl": "".join(
                f'{{"text": "{LONG}", "label": "{c}", "v": {v}}}\n'
                for c, v in zip("aba", ([1, 2], [1], [3, 4]), strict=True)
            )
        },
    ),
    "empty lists": Case(
        "label a.jsonl -o out.csv --vectors v",
        r"'v' of a\.jsonl.*",
        {"a.jsonl": "".join(f'{{"text": "{LONG}", "label": "{c}", "v": []}}\n' for c in "ab")},
    ),
    "for a model of texts": case(
        PREDICT + "--vectors v.npy", r"model needs texts.*v\.npy.*--text", v__npy=numpy_file(np.ones((120, 2)))
    ),
}

OPTIONS = {
    "unknown": case(LABEL + "--losss hinge", r"--losss.*Try 'transduce label --help'"),
    "command": case("lable documents.csv", r"'lable'.*Try 'transduce --help'"),
    "no command": case("", r"Missing command.*Try 'transduce --help'"),
    "no file": case("label -o out.csv", r"'FILE'.*Try 'transduce label --help'"),
    "no output": case("label documents.csv", r"'-o' / '--out'.*Try 'transduce label --help'"),
    "too many files": case(LABEL + "more.csv", r"more\.csv.*Try 'transduce label --help'"),
    "no value": case("label documents.csv -o", r"'-o' requires.*Try 'transduce --help'"),
    "loss": case(LABEL + "--loss l0", r"'--loss'.*'l0'.*'hinge'"),
    "features": case(LABEL + "--features bert", r"'--features'.*'bert'.*'tfidf'"),
    "annealing": case(LABEL + "--annealing slow", r"'--annealing'.*'slow'.*'soft'"),
    "format": case(LABEL + "--format xlsx", r"'--format'.*'xlsx'.*'csv'"),
    "alpha in words": case(LABEL + "--alpha small", r"'--alpha'.*'small'"),
    "alpha 0": case(LABEL + "--alpha 0", r"'--alpha'.*0"),
    "alpha NaN": case(LABEL + "--alpha nan", r"'--alpha'.*nan"),
    "alpha infinite": case(LABEL + "--alpha inf", r"'--alpha'.*inf"),
    "ngrams": case(LABEL + "--ngrams 3", r"'--ngrams'.*3.*1<=x<=2"),
    "seed": case(LABEL + "--seed -1", r"'--seed'.*-1"),
    "seed in words": case(LABEL + "--seed x", r"'--seed'.*'x'"),
    "jobs": case(LABEL + "--jobs 0", r"'--jobs'.*0"),
    "number": case("queue documents.csv -o q.csv -n 0", r"'-n'.*0"),
    "words": case("inspect m.safetensors --words -1", r"'--words'.*-1"),
    "flag with a value": case(LABEL + "--quiet=yes", r"'--quiet'.*value"),
}


def configured(content: Content, expected: str, typed: str = LABEL) -> Case:
    return Case(typed + "--config c.toml", expected, {"c.toml": content})


CONFIGS = {
    "missing": case(LABEL + "--config nope.toml", r"nope\.toml does not exist.*Check"),
    "folder": configured(folder, r"c\.toml cannot be read.*Name a file"),
    "broken": configured("seed = = 1", r"c\.toml is not valid TOML.*line 1.*Correct"),
    "Latin-1": configured(b'text = "\xe9"', r"c\.toml is not UTF-8.*Save"),
    "unknown": configured("sede = 1", r"c\.toml sets 'sede'.*Correct or remove"),
    "unknown for one": configured("[label]\nwords = 1", r"c\.toml sets 'words' for label.*--help"),
    "a word for a number": configured('seed = "x"', r"c\.toml sets 'seed' to 'x', but it must be a whole number"),
    "a list for a number": configured(
        "seed = [1, 2]", r"c\.toml sets 'seed' to \[1, 2\], but it must be a whole number"
    ),
    "a fraction for a number": configured("seed = 1.5", r"c\.toml sets 'seed' to 1\.5, but it must be a whole number"),
    "a date for a number": configured("seed = 2024-01-01", r"c\.toml sets 'seed' to .*, but it must be a whole number"),
    "a truth value for a number": configured(
        "seed = true", r"c\.toml sets 'seed' to True, but it must be a whole number"
    ),
    "a number for a column": configured("label = 3", r"c\.toml sets 'label' to 3, but it must be a string"),
    "a number for columns": configured("text = 3", r"c\.toml sets 'text' to 3, but it must be a string or a list"),
    "numbers for columns": configured("text = [3]", r"c\.toml sets 'text' to \[3\], but it must be a string or a list"),
    "a number for the prior": configured("prior = 3", r"c\.toml sets 'prior' to 3, but it must be a string or a list"),
    "a list for one": configured('label = ["a"]', r"c\.toml sets 'label' to \['a'\], but it must be a string"),
    "a word for a flag": configured(
        'quiet = "maybe"', r"c\.toml sets 'quiet' to 'maybe', but it must be true or false"
    ),
    "a table for one value": configured(
        "[seed]\na = 1", r"c\.toml sets 'seed' to \{'a': 1\}, but it must be a whole number"
    ),
    "a value for a command": configured("predict = 3", r"c\.toml sets 'predict'.*Correct or remove"),
    "choice": configured('loss = "l0"', r"c\.toml sets 'loss' to an invalid value.*'l0'.*'hinge'"),
    "range": configured("alpha = -1", r"c\.toml sets 'alpha' to an invalid value.*-1.*1e-12<=x"),
    "NaN": configured("alpha = nan", r"c\.toml sets 'alpha' to an invalid value.*nan"),
    "fraction of a class": configured(
        "[prior]\ntravel = {a = 1}", r"c\.toml sets 'prior' to \{'a': 1\} for class 'travel', but it must"
    ),
    "a config in a config": configured('config = "d.toml"', r"c\.toml sets 'config'.*Correct or remove"),
    "an argument": configured(
        '[label]\nfile = "documents.csv"', r"c\.toml sets 'file' for label.*--help", "label -o out.csv "
    ),
    "unknown class": configured("[prior]\nfootball = 0.2", r"'football'.*Label a row"),
    "out": configured('out = "x.txt"', r"x\.txt must end in \.csv", "label documents.csv "),
}


def answered(content: Content, expected: str, typed: str = LABEL) -> Case:
    return Case(typed + "--answers q.csv", expected, {"q.csv": content})


ANSWERS = {
    "missing": case(LABEL + "--answers nope.csv", r"nope\.csv.*no such file.*Check"),
    "empty": answered("", r"q\.csv.*empty.*Add"),
    "no row": answered("label\ntravel\n", r"q\.csv needs.*no 'row'.*Add"),
    "no label": answered("row\n30\n", r"q\.csv needs.*no 'label'.*Add"),
    "row too large": answered("row,label\n30,travel\n121,travel\n", r"row 2 of q\.csv labels row 121.*1 to 120"),
    "row 0": answered("row,label\n0,travel\n", r"row 1 of q\.csv labels row 0.*1 to 120"),
    "row in words": answered("row,label\nthird,travel\n", r"row 1 of q\.csv.*'third'.*Correct"),
    "row missing": answered("row,label\n,travel\n", r"row 1 of q\.csv.*''.*Correct"),
    "against a label": answered(
        "row,label\n1,nonsense\n", r"row 1 has the label '\w+', but q\.csv says 'nonsense'.*Correct"
    ),
    "twice": answered("row,label\n30,travel\n30,banking\n", r"q\.csv labels row 30 twice.*Keep one"),
    "another text": answered("row,label,text\n30,travel,what?\n", r"row 30 of q\.csv.*'text'.*sorted\?.*Restore"),
    "queue": answered("row,label\n999,travel\n", r"row 1 of q\.csv labels row 999", "queue documents.csv -o new.csv "),
}
