"""The tiny model: its sentences, its measures, its training, and the moments that are stored."""

import re

import pytest
import renew
import torch
import train

from eleven_steps.beyond import ablate, moments, tiny
from eleven_steps.beyond import grammar as sentences
from eleven_steps.beyond.grammar import CONTEXT_LENGTH, NUMBERS, make_stories, read, write
from eleven_steps.beyond.tiny import TinyModel, measure, prefix_matching, story_loss, without_head
from eleven_steps.checks import wrong_class
from helpers import examples

pytestmark = pytest.mark.usefixtures("one_thread")

NOTEBOOK = renew.COURSE["18_heads_learn"]
SENTENCE = "Anna met Bert . the dogs near the old tree run . Anna met"


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TinyModel()


@pytest.fixture(scope="module")
def stored():
    return moments.load_moments()


def words_and_kinds(number, seed):
    stories = make_stories(number, seed)
    for tokens, kinds in zip(stories.tokens, stories.kinds, strict=True):
        yield write(tokens), kinds.tolist()


# The sentences


def test_every_verb_agrees_with_the_first_noun_of_its_sentence():
    found, against = 0, 0
    nouns = {*sentences.SINGULAR, *sentences.PLURAL}
    for words, kinds in words_and_kinds(50, seed=1):
        for place, kind in enumerate(kinds):
            if kind == sentences.VERB:
                start = max(i for i in range(place) if i == 0 or words[i - 1] == ".")
                before = [word for word in words[start:place] if word in nouns]
                many = before[0] in sentences.PLURAL
                assert words[place] in (sentences.VERBS_OF_MANY if many else sentences.VERBS)
                assert len(before) >= 2
                found += 1
                against += (before[-1] in sentences.PLURAL) != many
    assert found > 50
    assert 0.3 < against / found < 0.7  # the nearest noun is no help


def test_names_come_back_after_the_word_they_followed_before():
    distances = set()
    for words, kinds in words_and_kinds(50, seed=2):
        for place, kind in enumerate(kinds):
            if kind in (sentences.AGAIN, sentences.NAME):
                last = max(i for i in range(place - 1) if words[i] == words[place - 1])
                assert words[last + 1] == words[place]
                distances.add(place - last - 1)
            if kind == sentences.NAME:
                assert words[place] in sentences.NAMES
                assert words[place - 1] in sentences.MEETINGS
    assert len(distances) > 15


def test_a_seed_makes_the_same_stories():
    one, same, other = make_stories(5, 1), make_stories(5, 1), make_stories(5, 2)
    assert torch.equal(one.tokens, same.tokens) and torch.equal(one.kinds, same.kinds)
    assert not torch.equal(one.tokens, other.tokens)
    assert one.tokens.shape == one.kinds.shape == (5, CONTEXT_LENGTH + 1)
    assert torch.equal(one[1:3].kinds, one.kinds[1:3])


def test_sentences_are_read_as_they_are_written():
    words = write(read("Anna met Bert. The dogs run.")[0])
    assert " ".join(words) == "Anna met Bert . the dogs run ."
    assert len(set(sentences.WORDS)) == len(NUMBERS)


# The measures


def test_prefix_matching_on_a_pattern_made_by_hand():
    tokens = torch.tensor([[7, 8, 9, 7, 5, 7, 8]])
    weights = torch.zeros(1, 2, 7, 7)
    weights[0, 0, 3, 1] = 0.5  # 7 stood at 0: after it comes 1
    weights[0, 0, 5, 4] = 0.9  # 7 stood last at 3: after it comes 4
    weights[0, 0, 5, 1] = 0.1  # not the last time
    weights[0, 0, 6, 2] = 0.4  # 8 stood at 1: after it comes 2
    weights[0, 0, 2, 1] = 1.0  # 9 never stood before: not counted
    weights[0, 1, 6, 2] = 0.9
    everywhere = torch.ones(1, 7, dtype=torch.bool)
    expected = torch.tensor([(0.5 + 0.9 + 0.4) / 3, 0.3])
    assert torch.allclose(prefix_matching(weights, tokens, everywhere), expected)
    only_last = torch.arange(7)[None] == 6
    assert torch.allclose(prefix_matching(weights, tokens, only_last), torch.tensor([0.4, 0.9]))


def test_the_model_looks_back_only(model):
    one, other = read(SENTENCE), read(SENTENCE.replace("Anna met", "Anna saw"))
    changed = (one != other).nonzero()[0, 1]
    assert torch.allclose(model(one)[:, :changed], model(other)[:, :changed], atol=1e-6)
    assert not torch.allclose(model(one)[:, changed:], model(other)[:, changed:], atol=1e-3)


def test_layers_traced_add_up_to_the_model(model):
    tokens = read(SENTENCE)
    every = tiny.trace_layers(model, tokens)
    x = model.embedding(tokens) + sum(steps[-1].tensors["out"] for steps in every)
    assert torch.allclose(model.unembedding(x), model(tokens), atol=1e-6)
    shapes = [tuple(weights.shape) for weights in tiny.patterns(model, tokens)]
    assert shapes == [(1, heads, 14, 14) for heads in tiny.NUM_HEADS]


def test_a_head_taken_out_adds_nothing_and_comes_back(model):
    tokens = read(SENTENCE)
    before = model(tokens)
    with without_head(model, 1, 1):
        out = model(tokens)
    assert torch.equal(model(tokens), before)
    first, second = (steps[9].tensors["context"] for steps in tiny.trace_layers(model, tokens))
    second[..., model.layers[1].head_dim :] = 0  # the second of two heads
    outs = model.layers[0].out_proj(first), model.layers[1].out_proj(second)
    assert torch.allclose(model.unembedding(model.embedding(tokens) + sum(outs)), out, atol=1e-6)
    assert not torch.allclose(out, before, atol=1e-3)


# Paths cut


@pytest.mark.parametrize("reads", ablate.READERS)
def test_a_path_that_is_cut_changes_one_of_queries_keys_and_values_alone(model, reads):
    tokens, attention = read(SENTENCE), model.layers[0]
    part = slice(attention.head_dim, 2 * attention.head_dim)  # of head 1
    before = tiny.trace_layers(model, tokens)
    written = before[0][9].tensors["context"][..., part] @ attention.out_proj.weight[:, part].T
    with ablate.without_path(model, [1], reads):
        after = tiny.trace_layers(model, tokens)
    for name, numbers in after[1][1].tensors.items():
        whole = before[1][1].tensors[name]
        if name == reads:
            read_by = getattr(model.layers[1], ablate.READERS[reads])
            assert torch.allclose(whole - numbers, read_by(written), atol=1e-6)
            assert not torch.allclose(whole, numbers, atol=1e-3)
        else:
            assert torch.equal(numbers, whole)
    assert torch.equal(
        tiny.trace_layers(model, tokens)[1][10].tensors["out"], before[1][10].tensors["out"]
    )


def test_heads_that_look_back_are_told_best_first():
    report = tiny.Report([[]], [[0.3, 0.1, 0.6], [0.9, 0.9]], 1.0, 1.0, 0.0, 0.0)
    assert report.looking_back == [2, 0]
    assert tiny.Report([[]], [[0.1, 0.2], []], 1.0, 1.0, 0.0, 0.0).looking_back == [1]


# Training


@pytest.mark.nightly
def test_training_lowers_the_loss_and_is_the_same_for_the_same_seed():
    trained, stories = [], make_stories(100, 0)
    for _ in range(2):
        torch.manual_seed(0)
        model = TinyModel()
        before = story_loss(model, stories).item()
        assert list(train.train(model, stories, seed=0, steps=20)) == list(range(21))
        assert story_loss(model, stories).item() < before - 0.2
        trained.append(model.unembedding.weight)
    assert torch.equal(*trained)


def test_what_is_no_number_is_not_stored(tmp_path):
    answers = {0: dict.fromkeys(ablate.ASKED, 1.0) | {"control": float("nan")}}
    with pytest.raises(ValueError, match="not JSON compliant"):
        train.store_seeds(answers, tmp_path / "seeds.json")
    assert not list(tmp_path.iterdir())


def test_what_is_stored_is_read_again(tmp_path, monkeypatch, model):
    def timed(seed, heads, keep=lambda *_: None):
        for step in train.STORED:
            keep(step, model)
        return model, 1.0

    monkeypatch.setattr(train, "timed", timed)
    monkeypatch.setattr(train, "fresh", lambda seed: make_stories(5, seed))
    monkeypatch.setattr(moments, "MOMENTS", tmp_path / "moments.safetensors")
    train.store(0, moments.MOMENTS)
    found = moments.load_moments()
    assert [moment.step for moment in found] == [*train.STORED]
    weight = model.unembedding.weight.half().float()
    assert all(torch.equal(each.model.unembedding.weight, weight) for each in found)
    assert moments.load_facts()["seed"] == "0"


def test_moments_that_are_missing_say_who_writes_them(tmp_path, monkeypatch):
    monkeypatch.setattr(moments, "MOMENTS", tmp_path / "none.safetensors")
    with pytest.raises(FileNotFoundError, match=r"python bench/train\.py writes it"):
        moments.load_moments()


# The stored moments, and the notebook that shows them


def test_about_a_dozen_moments_are_stored_in_little_room(stored):
    assert moments.MOMENTS.stat().st_size < 500_000
    assert [moment.step for moment in stored] == list(train.STORED)
    facts = moments.load_facts()
    assert facts["command"] == f"python bench/train.py --seed {train.SEED}"
    assert facts["seed"] == str(train.SEED)


def test_the_stored_moments_are_what_is_said_of_them(stored):
    stories = train.fresh(train.SEED)
    layer, head = measure(stored[-1].model, stories).best
    for moment in stored[::4]:  # and the notebook's film shows each
        report = measure(moment.model, stories)
        assert report.loss == pytest.approx(moment.loss, abs=0.02)
        assert report.prefix[layer][head] == pytest.approx(moment.prefix, abs=0.01)


def test_the_last_moment_reaches_what_it_should(stored):
    model, stories = stored[-1].model, train.fresh(train.SEED + 1)
    report = measure(model, stories)
    assert report.names >= 0.95 and report.agreement >= 0.95
    assert max(p for row in report.prefix for p in row) >= 0.9
    control = float(re.search(r"loss (\d\.\d\d),", moments.load_facts()["control"])[1])
    with without_head(model, *report.best):
        assert measure(model, stories).loss_on_all == pytest.approx(control, rel=0.1)


def test_ten_seeds_are_stored_in_little_room_and_hold_what_is_said():
    assert train.SEEDS.stat().st_size < 20_000
    seeds = examples.load_example("seeds")
    assert seeds.meanings == ablate.ASKED and {len(row) for row in seeds.tensors.values()} == {10}
    assert all(
        source.startswith("python bench/train.py --seeds 10, ") for source in seeds.sources.values()
    )
    assert seeds["whole"].min() == 1 and seeds["without_another"].min() == 1
    assert seeds["control"].max() < 0.4 and seeds["keys_cut"].max() < 0.25
    assert min(seeds["queries_cut"].min(), seeds["values_cut"].min()) > 0.94
    assert (seeds["without_completing"] < 0.31).sum() == 9
    assert seeds["without_completing"][4] > 0.8  # seed 4: a second head stands in
    backup = seeds["without_looking_back"] > 0.94
    assert backup.sum() == 5 and seeds["without_looking_back"][~backup].max() < 0.12
    assert seeds["verbs_without_one"].min() > 0.85 and seeds["prefix"].min() > 0.85
    assert seeds["prefix_random"].max() < 0.35 < 0.65 < seeds["prefix_random_names"].min()


@pytest.mark.nightly
def test_the_stored_seed_is_the_stored_model(stored):
    seeds, stories = examples.load_example("seeds"), train.fresh(train.SEED)
    answers = ablate.look_at(stored[-1].model, stories, train.SEED)
    for name, answer in answers.items():
        assert seeds[name][train.SEED].item() == pytest.approx(answer, abs=0.03), name


def test_the_straight_view_lets_earlier_words_see_later_ones():
    torch.manual_seed(0)
    straight = TinyModel(attention=wrong_class("view_straight"))
    one, other = read(SENTENCE), read(SENTENCE.replace(". Anna met", ". Anna saw"))
    changed = straight(one)[:, :-1] - straight(other)[:, :-1]
    assert changed.abs().max() > 1e-3


# The pictures


def test_a_look_says_where_the_last_word_looks(stored):
    layer, head = measure(stored[-1].model, make_stories(100, 1)).best
    picture = moments.look(SENTENCE, layer, head)
    assert picture.title.startswith('The last word, "met", looks most at "Bert", word 2: ')
    assert picture.svg.count(">dogs</text>") == 2  # at its row and at its column
