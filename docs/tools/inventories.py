"""Inventories for intersphinx: the names of other projects that our pages refer to, so that no network is needed."""

import zlib

HEADER = (
    "# Sphinx inventory version 2\n# Project: {name}\n# Version: \n"
    "# The remainder of this file is compressed using zlib.\n"
)
GENERATED = {
    "sklearn": ("https://scikit-learn.org/stable/", "modules/generated/{}.html"),
    "numpy": ("https://numpy.org/doc/stable/", "reference/generated/{}.html"),
    "scipy": ("https://docs.scipy.org/doc/scipy/", "reference/generated/{}.html"),
}
NAMES = {
    "sklearn": {
        "sklearn.base.BaseEstimator": "class",
        "sklearn.calibration.CalibratedClassifierCV": "class",
        "sklearn.calibration.CalibrationDisplay": "class",
        "sklearn.feature_extraction.text.TfidfVectorizer": "class",
        "sklearn.linear_model.LogisticRegression": "class",
        "sklearn.metrics.ConfusionMatrixDisplay": "class",
        "sklearn.model_selection.GridSearchCV": "class",
        "sklearn.model_selection.KFold": "class",
        "sklearn.model_selection.cross_val_score": "function",
        "sklearn.pipeline.Pipeline": "class",
        "sklearn.preprocessing.normalize": "function",
        "sklearn.semi_supervised.LabelSpreading": "class",
        "sklearn.semi_supervised.SelfTrainingClassifier": "class",
        "sklearn.svm.LinearSVC": "class",
    },
    "numpy": {"numpy.ndarray": "class"},
    "scipy": {"scipy.sparse.csr_matrix": "class", "scipy.optimize.linear_sum_assignment": "function"},
}
URLS = {
    name.rpartition(".")[2]: f"{site}{page.format(name)}"
    for project, (site, page) in GENERATED.items()
    for name, kind in NAMES[project].items()
    if kind == "class"  # names of functions, such as normalize, are those of modules of ours too
}
"""Pages of these classes by their last part, for Markdown pages."""
TERMS = {"numpy": {"array_like": ("std:term", "glossary.html#term-array_like")}}
PYTHON = {
    "bltin-boolean-values": ("std:label", "library/stdtypes.html#bltin-boolean-values", "bool"),
    "False": ("py:data", "library/constants.html#False"),
    "None": ("py:data", "library/constants.html#None"),
    "True": ("py:data", "library/constants.html#True"),
    "callable": ("py:function", "library/functions.html#callable"),
    "generator": ("std:term", "glossary.html#term-generator"),
    "iterable": ("std:term", "glossary.html#term-iterable"),
    "sequence": ("std:term", "glossary.html#term-sequence"),
    "Exception": ("py:exception", "library/exceptions.html#Exception"),
    "TypeError": ("py:exception", "library/exceptions.html#TypeError"),
    "UserWarning": ("py:exception", "library/exceptions.html#UserWarning"),
    "ValueError": ("py:exception", "library/exceptions.html#ValueError"),
    "bool": ("py:class", "library/functions.html#bool"),
    "dict": ("py:class", "library/stdtypes.html#dict"),
    "enum.Enum": ("py:class", "library/enum.html#enum.Enum"),
    "float": ("py:class", "library/functions.html#float"),
    "int": ("py:class", "library/functions.html#int"),
    "list": ("py:class", "library/stdtypes.html#list"),
    "pathlib.Path": ("py:class", "library/pathlib.html#pathlib.Path"),
    "str": ("py:class", "library/stdtypes.html#str"),
    "tuple": ("py:class", "library/stdtypes.html#tuple"),
}
ALIASES = {
    "Path": "pathlib.Path",
    "csr_matrix": "scipy.sparse.csr_matrix",
    "estimator": "sklearn.base.BaseEstimator",
}
"""Words in the types of parameters, and what they refer to."""


def write(folder):
    """Write one inventory for each project to the folder; return the mapping for intersphinx."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for name, (site, page) in GENERATED.items():
        entries = {key: (f"py:{kind}", f"{page.format(key)}#{key}") for key, kind in NAMES[name].items()}
        entries |= TERMS.get(name, {})
        mapping[name] = (site, _write(folder / f"{name}.inv", name, entries))
    mapping["python"] = ("https://docs.python.org/3/", _write(folder / "python.inv", "python", PYTHON))
    return mapping


def _write(path, name, entries):
    lines = "".join(f"{key} {kind} 1 {place} {(*title, '-')[0]}\n" for key, (kind, place, *title) in entries.items())
    path.write_bytes(HEADER.format(name=name).encode() + zlib.compress(lines.encode()))
    return str(path)
