"""Model files that cannot be read, and outputs that cannot be written."""

import pickle

import numpy as np
from safetensors.numpy import save

from helpers.bad_inputs.case import (
    LABEL,
    case,
    changed_model,
    cut_model,
    folder,
    link,
    numpy_file,
    zipped,
)

MODELS = {
    "missing": case("predict nope.safetensors documents.csv -o out.csv", r"nope\.safetensors does not exist.*Correct"),
    "folder": case("predict place documents.csv -o out.csv", r"place is a folder.*Name", place=folder),
    "cut in its numbers": case(
        "predict cut.safetensors documents.csv -o out.csv",
        r"cut\.safetensors.*not a complete.*Copy it again",
        cut__safetensors=cut_model(0.9),
    ),
    "cut in its header": case(
        "inspect cut.safetensors", r"cut\.safetensors.*not a complete.*Copy it again", cut__safetensors=cut_model(0.02)
    ),
    "empty": case("inspect m", r"m is not a usable model.*empty.*Copy it again", m=b""),
    "pickle": case(
        "predict m.pkl documents.csv -o out.csv", r"m\.pkl.*pickle.*run code.*again", m__pkl=pickle.dumps({"a": 1})
    ),
    "archive": case("evaluate m.zip documents.csv", r"m\.zip.*zip archive.*again", m__zip=zipped("x")),
    "CSV": case("report documents.csv documents.csv -o r.html", r"documents\.csv is not a usable model.*again"),
    "exchanged with the file": case("predict documents.csv m.safetensors -o out.csv", r"The order is MODEL FILE"),
    "another's": case(
        "inspect o.safetensors", r"o\.safetensors.*not one of transduce.*again", o__safetensors=save({"a": np.ones(3)})
    ),
    "newer": case(
        "inspect n.safetensors",
        r"n\.safetensors.*version is 99.*Upgrade",
        n__safetensors=changed_model(lambda d, _: d.update(version=99)),
    ),
    "without words": case(
        "inspect n.safetensors",
        r"n\.safetensors.*again",
        n__safetensors=changed_model(lambda _, t: t.pop("vocabulary")),
    ),
    "class twice": case(
        "inspect n.safetensors",
        r"n\.safetensors.*class twice.*again",
        n__safetensors=changed_model(lambda d, _: d.update(classes=["a"] * 3)),
    ),
    "NaN": case(
        "inspect n.safetensors",
        r"n\.safetensors.*coef.*again",
        n__safetensors=changed_model(lambda _, t: t.update(coef=t["coef"] * np.nan)),
    ),
    "too few weights": case(
        "inspect n.safetensors",
        r"n\.safetensors.*coef.*shape.*again",
        n__safetensors=changed_model(lambda _, t: t.update(coef=t["coef"][:, 1:].copy())),
    ),
    "another loss": case(
        "inspect n.safetensors",
        r"n\.safetensors.*loss.*again",
        n__safetensors=changed_model(lambda d, _: d.update(loss="l0")),
    ),
    "header that is not JSON": case(
        "inspect n.safetensors",
        r"n\.safetensors.*JSON.*again",
        n__safetensors=(20).to_bytes(8, "little") + b"x" * 30,
    ),
    "huge header": case("inspect n.safetensors", r"n\.safetensors.*again", n__safetensors=b"\xff" * 64),
    "of texts for svmlight": case(
        "predict m.safetensors a.svm -o out.csv", r"needs texts.*a\.svm.*Pass a file", a__svm="1 1:1\n"
    ),
    "of vectors for texts": case(
        "predict v.safetensors documents.csv -o out.csv", r"vectors of 8 numbers.*documents\.csv.*--vectors"
    ),
    "of shorter vectors": case(
        "predict v.safetensors documents.csv -o out.csv --vectors w.npy",
        r"vectors of 8 numbers.*documents\.csv have 9.*Make",
        w__npy=numpy_file(np.ones((120, 9))),
    ),
    "of shorter svmlight": case(
        "predict v.safetensors a.svm -o out.csv", r"vectors of 8 numbers.*a\.svm have 9.*Make", a__svm="1 8:1\n"
    ),
    "of vectors for queue": case(
        "queue documents.csv -o q.csv --model v.safetensors", r"vectors of 8 numbers.*documents\.csv.*--vectors"
    ),
    "missing for queue": case(
        "queue documents.csv -o q.csv --model nope.safetensors", r"nope\.safetensors does not exist.*Correct"
    ),
}

OUTPUTS = {
    "suffix": case("label documents.csv -o out.txt", r"out\.txt must end in \.csv.*Rename"),
    "no suffix": case("predict m.safetensors documents.csv -o out", r"output out must end in \.csv.*Rename"),
    "svmlight": case("label documents.csv -o out.svm", r"out\.svm must end in \.csv.*Rename"),
    "folder missing": case("label documents.csv -o no/out.csv", r"no/out\.csv.*no folder no.*Make it"),
    "a folder": case("label documents.csv -o out.csv", r"out\.csv is a folder.*Name a file", out__csv=folder),
    "the input": case("label documents.csv -o documents.csv", r"documents\.csv is also an input.*Name another"),
    "the input by another path": case(
        "label documents.csv -o ./sub/../documents.csv", r"documents\.csv is also an input.*Name another", sub=folder
    ),
    "a link to the input": case(
        "label documents.csv -o l.csv", r"l\.csv is also an input.*Name another", l__csv=link("documents.csv")
    ),
    "the answers": case(
        LABEL.replace("out.csv", "q.csv") + "--answers q.csv",
        r"q\.csv is also an input.*Name another",
        q__csv="row,label\n30,travel\n",
    ),
    "the prior": case(
        LABEL.replace("out.csv", "p.csv") + "--prior p.csv",
        r"p\.csv is also an input.*Name another",
        p__csv="travel,0.3\n",
    ),
    "model suffix": case(LABEL + "--model m.pkl", r"m\.pkl must end in \.safetensors.*Rename"),
    "model folder missing": case(LABEL + "--model no/m.safetensors", r"no/m\.safetensors.*no folder no.*Make it"),
    "report suffix": case(LABEL + "--report r.pdf", r"r\.pdf must end in \.html.*Rename"),
    "report folder missing": case(LABEL + "--report no/r.html", r"no/r\.html.*no folder no.*Make it"),
    "report on standard output": case("report m.safetensors documents.csv -o -", r"- must end in \.html.*Rename"),
    "queue suffix": case("queue documents.csv -o q.xlsx", r"q\.xlsx must end in \.csv.*Rename"),
    "one file for two": case(
        LABEL + "--report r.html",
        r"out\.csv and r\.html.*Name them differently",
        r__html=link("out.csv"),
        out__csv="x\n",
    ),
    "two things on standard output": case("label documents.csv -o - --json", r"--json.*standard output.*Name a file"),
    "two things on standard output of predict": case(
        "predict m.safetensors documents.csv -o - --json", r"--json.*standard output.*Name a file"
    ),
    "two things on standard output of queue": case(
        "queue documents.csv -o - --json", r"--json.*standard output.*Name a file"
    ),
    "demo into a file": case("demo -o documents.csv", r"documents\.csv cannot be made.*Name another"),
}
