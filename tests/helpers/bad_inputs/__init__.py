"""Bad inputs of the command line by theme: the command, the sentence that it ends with, and the files it reads."""

from helpers.bad_inputs.models_and_outputs import MODELS, OUTPUTS
from helpers.bad_inputs.priors_and_options import ANSWERS, CONFIGS, OPTIONS, PRIORS, VECTORS
from helpers.bad_inputs.tables import COLUMNS, CSV, FILES, JSON, LABELS, OTHER_FORMATS

TABLES = {
    "file": FILES,
    "csv": CSV,
    "json": JSON,
    "format": OTHER_FORMATS,
    "column": COLUMNS,
    "label": LABELS,
    "prior": PRIORS,
    "vectors": VECTORS,
    "model": MODELS,
    "output": OUTPUTS,
    "option": OPTIONS,
    "config": CONFIGS,
    "answers": ANSWERS,
}
CASES = {f"{kind}: {name}": one for kind, table in TABLES.items() for name, one in table.items()}
