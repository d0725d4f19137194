"""Randomly initialised models of a few thousand weights, saved like the real ones."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

_LINE = "the red fox blue hen old barn runs sleeps deep lake river nile seal lives north cold"
WORDS = _LINE.split(" ")
BERT_LENGTH = 24


def bert_tokenizer(folder: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *string.ascii_lowercase, *string.digits]
    pieces += [f"##{letter}" for letter in string.ascii_lowercase + string.digits] + list(".,?!")
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=BERT_LENGTH,
    ).save_pretrained(folder)  # fmt: skip


def bert_config(**more: Any) -> BertConfig:
    return BertConfig(
        vocab_size=120, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=BERT_LENGTH, initializer_range=0.5, **more,
    )  # fmt: skip


def bert(folder: Path, *, broken: bool = False) -> str:
    """A mean-pooling encoder; `broken` gives NaN for texts with the word "seal"."""
    torch.manual_seed(1)
    model = BertModel(bert_config())
    if broken:
        model.embeddings.word_embeddings.weight.data[4 + WORDS.index("seal")] = float("nan")
    model.save_pretrained(folder)
    bert_tokenizer(folder)
    return str(folder)


def bert_ranker(folder: Path, labels: int, *, broken: bool = False) -> str:
    """A cross-encoder with a classification head."""
    torch.manual_seed(2)
    model = BertForSequenceClassification(bert_config(num_labels=labels))
    if broken:
        model.bert.embeddings.word_embeddings.weight.data[4 + WORDS.index("seal")] = float("nan")
    model.save_pretrained(folder)
    bert_tokenizer(folder)
    return str(folder)


def qwen3_tokenizer(folder: Path, *, ends: bool, side: str, answers: bool = True) -> None:
    """Byte-level BPE as Qwen3 has it; `ends` puts its end token behind a text, as the embedder does."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("y", "e"), ("ye", "s"), ("n", "o"), ("t", "h"), ("th", "e")] if answers else []
    pieces = [*alphabet, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE({piece: number for number, piece in enumerate(pieces)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    end = tokenizer.token_to_id("<|endoftext|>")
    if ends:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="$A <|endoftext|>", pair="$A $B <|endoftext|>", special_tokens=[("<|endoftext|>", end)]
        )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|endoftext|>", eos_token="<|endoftext|>", padding_side=side,
        model_max_length=4096,
    ).save_pretrained(folder)  # fmt: skip


def qwen3(
    folder: Path, *, ends: bool, side: str = "left", answers: bool = True, broken: bool = False, positions: int = 4096
) -> str:
    """Bare Qwen3 weights of a causal language model, as the embedder and the reranker have them."""
    torch.manual_seed(3)
    config = Qwen3Config(
        vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=positions, initializer_range=0.3,
        tie_word_embeddings=True,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    if broken:
        model.model.norm.weight.data[:] = float("nan")
    model.save_pretrained(folder)
    qwen3_tokenizer(folder, ends=ends, side=side, answers=answers)
    return str(folder)
