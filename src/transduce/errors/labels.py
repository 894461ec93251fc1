"""Errors and warnings about the labels y."""

from enum import Enum

from transduce.errors.record import Record


class LabelErrorKind(Enum):
    """Why y cannot be used; the value is the sentence for Python users.

    Fields: `row` the position in y, `entry` what stands there, `name` a label in it, `classes` the known classes,
    `hint` a question that may be empty.
    """

    NOT_A_LIST = "y must be a list or array with one label for each row, but is of type {type}. Convert it."
    SHAPE = "y should be a 1d array with one label for each row, but has shape {shape}. Pass one column."
    LENGTH = "X has {n_rows} rows and y has {n_labels}: inconsistent numbers of samples. Match them."
    NOTHING_LABELED = "y has no label: every row is unlabelled. Label a few rows, of each class if you can."
    NOTHING_LABELED_IN_FULL = "y has partial labels only. Label at least one row with a single class."
    INFINITE = "y contains inf or -inf, which is not a label. Replace it."
    CONTINUOUS = "Unknown label type: y is continuous. A classifier needs classes: pass names or whole numbers."
    MIXED_TYPES = "class names must have one type that can be sorted, but are {types}. Convert y or class_prior."
    ARRAY_ENTRY = "row {row} of y is an array, which is not a label. Use a set such as {example} for a partial label."
    MISSING_IN_SET = (
        "row {row} of y has {name!r} in {entry!r}, but it marks unlabelled rows and is not a class. Remove it, or use "
        "None for an unlabelled row."
    )
    PATH_WITHOUT_TAXONOMY = (
        "row {row} of y is {entry!r}. Use a set, {example}, for a partial label, or taxonomy= for paths."
    )
    UNKNOWN_RULED_OUT = "row {row} of y rules out {name!r}, which is not a class of y or class_prior.{hint} Correct it."
    UNKNOWN_CLASS = "row {row} of y names {name!r}, which is not a class. Correct it, or pass taxonomy=."
    EMPTY_BRANCH = (
        "row {row} of y names {name!r}, but no class under it is labelled or in class_prior. Label one, or change this."
    )
    EMPTY_SET = "row {row} of y is an empty set, which allows no class. Use None for an unlabelled row."
    ALL_RULED_OUT = "row {row} of y rules out all {n_classes} classes. Rule out fewer, or use None if it is unlabelled."
    TWO_NAMES = (
        "a class must have one name in y and class_prior, but {name!r} and {other!r} are the same class. Keep one."
    )
    NO_CLASS_ALLOWED = "row {row} of y allows no class. Allow at least one; allow all for an unlabelled row."
    ONE_COLUMN = "y is a boolean matrix with one column. Pass one column for each class, or one label for each row."
    SPARSE_NUMBERS = "y is a sparse matrix of {dtype}. Pass y.astype(bool) if it holds partial labels."
    MATRIX_OF_NUMBERS = (
        "y is a matrix of 0 and 1 with shape {shape}, but one label for each row was expected. Pass "
        "np.asarray(y).astype(bool) if it holds partial labels, with one column for each class."
    )
    PARTIAL_LABELS = "{estimator} takes no partial labels. Use TransductiveClassifier, or label those rows in full."


class LabelError(Record, ValueError):
    """Labels y that cannot be used; see LabelErrorKind for the kinds and their fields."""

    kind: LabelErrorKind


class LabelWarningKind(Enum):
    """What may be wrong with y; the value is the sentence for Python users. Fields as in LabelErrorKind."""

    SIGNS = "y holds only -1 and 1, and -1 means unlabelled. If -1 is a class, rename it or pass unlabeled=None."
    SIMILAR_IN_Y = "{name!r} is in partial labels of y, but never the only label. If you mean {near!r}, correct it."
    SIMILAR_IN_PRIOR = "{name!r} is in class_prior, but no row is labelled with it. If you mean {near!r}, correct it."
    SIMILAR_IN_EVIDENCE = (
        "{name!r} is in scores or guesses, but no row is labelled with it. If you mean {near!r}, correct it."
    )
    INNER_NODE = (
        "{name!r} in y is treated as a class of its own beside {near!r}. Pass taxonomy= to make it a partial label "
        "that allows all classes under it."
    )


class LabelWarning(Record, UserWarning):
    """Labels that may contain a mistake; see LabelWarningKind."""

    kind: LabelWarningKind
