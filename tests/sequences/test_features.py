"""Features of tokens: one token at a time and a corpus at once are the same."""

from hypothesis import given
from hypothesis import strategies as st

from transduce.sequences import token_features, token_matrix

TOKENS = st.lists(st.text(st.sampled_from("aBc1.,-é中"), min_size=1, max_size=6), max_size=8)


@given(st.lists(TOKENS, max_size=6))
def test_rows_of_the_matrix_are_the_features_of_the_tokens(sequences):
    X, names = token_matrix(sequences)
    expected = [set(token_features(tokens, i)) for tokens in sequences for i in range(len(tokens))]
    assert [{names[j] for j in X[row].indices} for row in range(X.shape[0])] == expected
    assert list(names) == sorted(set().union(*expected))
    assert X.sum() == sum(map(len, expected))


@given(st.lists(TOKENS, max_size=4), st.lists(TOKENS, max_size=4))
def test_new_sequences_have_the_columns_of_the_old_and_no_others(old, new):
    names = token_matrix(old)[1]
    X, same = token_matrix(new, names)
    assert same == names
    expected = [set(token_features(tokens, i)) & set(names) for tokens in new for i in range(len(tokens))]
    assert [{names[j] for j in X[row].indices} for row in range(X.shape[0])] == expected


def test_signs_around_a_word_are_no_part_of_it():
    for token in ("Smith", "smith,", "(Smith).", "“Smith”"):
        assert token_features([token], 0)[0] == "word=smith"
    assert token_features(["--"], 0)[0] == "word=--"


def test_ends_of_a_sequence_are_features():
    assert {"before:word=<start>", "after:word=<end>", "tenth=0"} <= set(token_features(["one"], 0))
    tenths = [token_features(["a"] * 20, i)[-1] for i in range(20)]
    assert tenths == [f"tenth={i // 2}" for i in range(20)]


def test_inputs_are_not_changed():
    sequences = [["a", "b"], [], ["c"]]
    token_matrix(sequences)
    assert sequences == [["a", "b"], [], ["c"]]
