"""What the checks say: sentences under names, by the step they are about and the kind of outcome.

The sentences of catalogued mistakes stand in the catalogue; these are all the others.
"""

FINDINGS: dict[tuple[int | None, str], dict[str, str]] = {
    (None, "value"): {
        "too_slow": (
            "The class did not answer all questions within {seconds:g} seconds of its own: look "
            "for a loop that does not end, or for work that torch does in one call."
        ),
        "other_output": "The output is another one at {where}.",
        "forward_reads": "forward reads {what}: work with self and x.",
        "right_elsewhere": "It is right at other sizes, and wrong at {where}.",
        "right_as_far": (
            "What forward computes is right up to step {number}, {name}; what step {next}, "
            "{what}, makes is not there. Look at what comes between."
        ),
        "random_in_eval": (
            "The same x gives other numbers each time in eval mode. Look for what is drawn anew "
            "in each forward, and for what is kept from one forward to the next."
        ),
        "class_expected": "A class built on `nn.Module` is expected.",
        "right_up_to": "What it computes is right up to step {number}, {name}.",
        "not_yet": "what forward returns is not yet {name}.",
        "other_sequence": (
            "your forward returns the right tensors in another order: `return {names}` is expected."
        ),
        "other_numbers_returned": (
            "your forward returns {came} {where}, as step {steps} does, but other numbers. Return "
            "an earlier step's tensors to see how far they are right."
        ),
        "other_whole": "`{name}` is {number} {where}{called}: another number is expected.",
        "other_numbers": (
            "`{name}` holds other numbers {where}: {name}{at} is {number}, and {right} is expected."
        ),
        "not_everywhere": "right {first}, but not everywhere: {fault}",
        "sizes_hide": "Equal sizes hide it {first}: {fault}",
        "whiteboard_hides": "The whiteboard hides it, where sizes are equal: {fault}",
        "function_reads": (
            "your function reads {what}, whatever it is given. Work with its own parameters, the "
            "names in the brackets of `def`."
        ),
        "typed_in": (
            "{size} is typed in where {letter} belongs: it is {size} {first} and {other} {where}."
        ),
        "other_each_time": (
            "the same arguments give something else the second time: look for what is drawn by "
            "chance, as a new layer's weights are, and for what is kept between calls."
        ),
        "as_given": "{name} comes back as it was given.",
        "of_another_step": "It is what step {number}, {name}, makes.",
        "rows_sum_to_1": "Its rows sum to 1, as after a softmax: that is for step 7.",
        "hidden_hold": "Only hidden scores differ: they hold {number:g}, and -inf is expected.",
        "axes_in_order": "It holds the right numbers with its axes in the order {order}.",
        "times_the_right": "Every number is {factor:.4g} times the right one.",
        "rows_off_alike": "Every row is off by the same numbers, as by a bias too few or too many.",
        "at_other_places": (
            "It holds the right numbers at other places: `view` and `reshape` keep the order."
        ),
        "other_number": "another number is asked for.",
        "other_matrix": "other numbers are asked for.",
        "built_with": "it is built with {name} = {size}; read the sizes again.",
        "built_with_bias": "qkv_bias is on; leave it at False.",
        "other_words": "another answer is asked for; {wanted}.",
    },
    (None, "type"): {
        "built_already": "This is a module already built: hand over the class itself.",
        "no_class": "This is a {name}: hand over a class.",
        "forward_no_tensors": "your forward returns {came}: the tensors of a step are expected.",
        "nothing": "your {what} returns nothing: end it with `return`.",
        "no_function": (
            "a function is expected; this is of type {name}. Hand over the function's name, "
            "without brackets."
        ),
        "other_parts": "your function returns {came}: `return {names}`, all of them, is expected.",
        "no_whole_number": "`{name}` is of type {type}: a whole number{hint} is expected.",
        "no_tensor": "`{name}` is {came}: a tensor {letters} is expected.",
        "other_dtype": "`{name}` holds {dtype}: {right} is expected.",
        "other_type": "{wanted} is expected; this is {came}.",
        "no_paper": "a dictionary with the names {names} is expected; this is {came}.",
        "no_words": "{wanted}; this is {came}.",
    },
    (None, "shape"): {
        "no_such_shapes": (
            "your forward returns {came} {where}, and no step does. Steps 2 to 4 end with `return "
            "queries, keys, values`, the later ones with one tensor."
        ),
        "other_shape": "`{name}` has shape {shape} {where}: {letters} = {right} is expected.",
    },
    (None, "nan"): {
        "forward_nan": "what your forward returns holds NaN {where}.",
        "holds_nan": "`{name}` holds NaN {where}, first in {name}{at}.",
        "nan_for_number": "{wanted} is expected; NaN is not a number.",
    },
    (None, "error"): {
        "forward_raises": "forward raises {error}, at {where}.",
        "raises": "your {what} raises {error}, {where}{line}.",
        "function_late": (
            "no end after {seconds:g} seconds of running: look for a loop without an end, or for "
            "work that torch does in one call."
        ),
    },
    (None, "so far"): {
        "no_layers": (
            "the layers are expected under the names W_query, W_key, W_value, out_proj; found "
            "are: {found}."
        ),
        "layers_to_come": "the constructor has no layer {these} yet.",
        "parts_to_come": "the layers are right. The constructor has no {these} yet.",
        "constructor_right": "the constructor is right. Next is step {next}, {name}: {letters}.",
        "right_so_far": "steps 1 to {number} are right. Next is step {next}, {name}: {letters}.",
        "paper_so_far": "right so far: {right}. Next is {next}.",
    },
    (None, "unfinished"): {
        "open": "not answered yet.",
        "not_repaired": "not repaired yet, it still does what it did.",
    },
    (None, "right"): {
        "all_right": "all eleven steps are right, in training too.",
        "right_everywhere": "right, on the whiteboard and everywhere else it was tried.",
        "right_wherever": "right, everywhere it was tried.",
        "right": "right.",
    },
    (None, "remark"): {
        "half_raises": "In bfloat16 it would fail, {error}: give what you make scores.dtype.",
        "made_on_cpu": "On a GPU it would fail: make the mask on x's device, `device=x.device`.",
    },
    (1, "value"): {
        "sequences_meet": (
            "Tokens at the same place in different sequences meet: b and num_tokens have changed "
            "places. Look at where they are read off x, and at every transpose of x."
        ),
        "head_dim_float": "self.head_dim is {size}, a float: `d_out // num_heads` is whole.",
        "head_dim_other": (
            "self.head_dim is {size} where d_out = {d_out} and num_heads = {num_heads}: {right} "
            "is expected."
        ),
        "size_other": "self.{name} is {size}: {right} was handed over.",
    },
    (1, "type"): {
        "no_module": "{name} is no nn.Module: begin with `class {name}(nn.Module):`.",
    },
    (1, "error"): {
        "other_signature": "The constructor cannot be called as `({signature})`: {error}.",
        "other_arguments": (
            "The constructor is called as `({signature})`, in this order: it raises {error}."
        ),
        "other_order": (
            "The constructor takes ({names}): the order is (d_in, d_out, context_length, dropout, "
            "num_heads, qkv_bias=False)."
        ),
        "constructor_raises": "The constructor raises {error}.",
    },
    (2, "value"): {
        "layers_lost": (
            "{lost} cannot be found: the layers are expected as `nn.Linear` under the names "
            "W_query, W_key, W_value and out_proj. The parameters found are: {found}."
        ),
        "added_lost": (
            "{lost} cannot be found, and this change needs {layers}. The parameters found are: "
            "{found}."
        ),
        "some_biases_missing": (
            "With qkv_bias=True there is no {those}: pass `bias=qkv_bias` to all three layers."
        ),
        "some_biases_always": (
            "With qkv_bias=False there is still a {those}: pass `bias=qkv_bias` to all three "
            "layers."
        ),
        "projection_absent": (
            "`{layer}(x)` is not among what forward computes. Look at the projections: each is "
            "the plain layer, applied to the plain x."
        ),
        "others_meet": (
            "{layers} meet in the scores: these are queries from W_query times keys from W_key. "
            "Look at where the projections are made and cut apart."
        ),
        "others_gathered": (
            "What the weights gather comes from {layers}: the values are `W_value(x)`. Look at "
            "the projections and at the context."
        ),
        "layers_idle": (
            "{layers} does not change the output. Look at where the projections are made and used."
        ),
        "changed_on_the_way": (
            "Something is applied to the {name}{after}: they are the plain projection of x, cut "
            "into heads. Look at what happens to them between `{layer}(x)` and the product."
        ),
        "tokens_moved": "The {name} of the tokens have changed places. Look at how they are made.",
        "backward_raises": "backward raises {error}: the weights cannot learn.",
        "no_gradient": "No gradient reaches {cut}. Take away `.detach()`, `.data`, `no_grad`.",
        "weights_changed": "forward changes the weights. Look for operations that end in `_`.",
    },
    (2, "shape"): {
        "layer_shape": (
            "`{name}` has shape {shape} at {where}: {right} is expected. Look at its `nn.Linear` "
            "in the constructor."
        ),
    },
    (3, "value"): {
        "heads_joined": (
            "All heads of the {name} go into one product: each head keeps its own head_dim "
            "features. Look at the view, and at the product, which is made head by head."
        ),
        "features_shared": (
            "Some features of the {name} are used by several heads and others by none. Look at "
            "how the features are shared out: head_dim neighbouring ones for each head."
        ),
        "heads_not_neighbours": (
            "The heads of the {name} are not made of neighbouring features of one token: head 0 "
            "has the first head_dim features, head 1 the next. Look at the view, (b, num_tokens, "
            "num_heads, head_dim), and the transpose after it."
        ),
    },
    (4, "value"): {
        "no_pair_returned": "{came}: return the output and what is kept, `return out, past`.",
        "norm_of_zero": (
            "Where queries and keys are 0 the output is NaN: add 1e-6 under the root of the norm."
        ),
        "not_grouped": (
            "The {name} are not grouped by head: before the product they are (b, num_heads, "
            "num_tokens, head_dim). Look at the transpose: it swaps dims 1 and 2."
        ),
    },
    (5, "value"): {
        "features_left_out": (
            "Not all features of the {name} count in the product. Look at it: it takes all "
            "head_dim features of a head."
        ),
        "mixed_before_product": (
            "The {name} are grouped by head, and then mixed up before the product. Look at the "
            "line of the product: only the last two dims of keys are swapped, with `transpose(2, "
            "3)`, which a view or reshape does not do."
        ),
        "heads_left_out": (
            "Only {some} of {num_heads} heads have scores. Look at the loop over heads, and at "
            "the product: all num_heads of them take part."
        ),
        "products_not_right": (
            "The queries and keys are right, and their products are not. Look at the scores: "
            "`queries @ keys.transpose(2, 3)`, one dot product for each pair, and nothing else."
        ),
        "scores_changed": (
            "What is masked is not the scores: something is done to them after the product. Look "
            "at the scores: `queries @ keys.transpose(2, 3)`, nothing else."
        ),
        "double_raises": (
            "After `.double()` forward raises {error}: a tensor is made in another dtype and "
            "stays there. Look for `.float()` and the like."
        ),
        "double_differs": "In float64 the output is another one. Look for conversions.",
    },
    (6, "value"): {
        "zero_scores": (
            "Where all scores are 0 the output is another one. Look at the mask: it goes by "
            "places, above the diagonal, not by what the scores are."
        ),
        "future_outweighs": (
            "Where tokens of the future have far higher scores than the others, they are seen. "
            "Look at the mask: their scores must be -inf before the softmax."
        ),
        "past_hidden": (
            "Tokens do not see all of their past and themselves. Look at the mask: -inf stands "
            "strictly above the diagonal, `triu(diagonal=1)`, and nowhere else."
        ),
        "future_not_masked": (
            "Tokens see their future{some}: not every score above the diagonal is masked{also}. "
            "Look at the mask: -inf stands strictly above the diagonal, and nowhere else."
        ),
        "future_seen": (
            "Tokens see their future{some}: weights above the diagonal are not 0. Look at the "
            "mask: -inf stands above the diagonal, before the softmax."
        ),
        "never_masked": (
            "The scores are right, none of them is masked, and the right weights never come. Look "
            "at the mask: future scores are -inf before the softmax."
        ),
        "future_in_eval": (
            "Tokens see their future in eval mode, and not in training. Look at what depends on "
            "`self.training`: the mask does not."
        ),
        "future_in_training": (
            "Tokens see their future in training. With dropout = 0 the output in training mode "
            "differs from that in eval mode. Look at what depends on `self.training`."
        ),
        "mask_learns": (
            "The mask is a parameter and learns: keep it with `register_buffer`, or unlearned."
        ),
        "something_kept": (
            "After a shorter text the same x gives something else. Look for what is kept from one "
            "forward to the next, such as a mask."
        ),
        "stays_on_cpu": (
            "On a GPU it would fail: a tensor stays on the CPU, whatever device x is on. Look for "
            '`.cpu()`, `.to("cpu")`, `device="cpu"`, and tensors that are no buffers.'
        ),
        "mask_trained": "the mask is a parameter and would learn: use `self.register_buffer`.",
    },
    (7, "value"): {
        "never_softmaxed": (
            "The scores are right and masked, and the right weights never come. Look at the "
            "softmax: `torch.softmax(masked / head_dim**0.5, dim=-1)`."
        ),
        "not_scaled": (
            "The scores are not scaled: divide them by the square root of head_dim. Look at the "
            "line before the softmax."
        ),
        "scaled_otherwise": (
            "The scores are divided by {divisor:.4g}; it should be the square root of head_dim "
            "({head_dim}), {root:.4g}. Look at the line before the softmax."
        ),
        "row_sums": (
            "The last row of the weights sums to {sum:.3f}, not to 1. Look at the softmax: it "
            "runs over the keys (`dim=-1`), and nothing scales the weights after it."
        ),
        "weights_nan": (
            "Some weights are NaN, though the mask hides the future alone. Look at the softmax: "
            "it runs over the keys, `dim=-1`."
        ),
        "not_their_softmax": (
            "The masked scores are right and the weights are not their softmax; the last row sums "
            "to {sum:.3f}. Look at the softmax: `torch.softmax(masked / head_dim**0.5, dim=-1)`."
        ),
        "dropout_changes_eval": (
            "With dropout above 0 the weights are other ones in eval mode too. Look at where "
            "dropout is used: in eval mode it changes nothing."
        ),
        "dropout_not_single": (
            "Dropout does not set single weights to 0. Apply it once, to the weights after the "
            "softmax."
        ),
        "dropout_rate": (
            "With dropout = {rate} a share of {share:.2f} of the weights is dropped and the "
            "others are multiplied by {factor:.3f}: expected are {rate} and {right:.3f}. Look at "
            "`nn.Dropout(dropout)` and where it is used."
        ),
        "dropout_repeated": (
            "Dropout hits the same weights every time: let it draw anew in each forward."
        ),
        "dropout_shared": (
            "Dropout hits the same weights in all {these}: apply `nn.Dropout` to the whole "
            "weights, (b, num_heads, num_tokens, num_tokens)."
        ),
        "mode_matters": (
            "With dropout = 0 the output in training mode differs from that in eval mode. Look at "
            "what depends on `self.training`."
        ),
        "other_gradients": (
            "The outputs are right and the gradients are not. Look for `.detach()`, `.data` or "
            "`no_grad` in forward."
        ),
        "dropout_number": (
            "self.dropout is a number: keep a layer, `nn.Dropout(dropout)`, that knows when the "
            "module is in training."
        ),
    },
    (8, "value"): {
        "other_weights_gather": (
            "The weights are right, and then other rows, columns or heads of them gather the "
            "values. Look at the context: it is `weights @ values`, head by head."
        ),
        "context_not_right": (
            "The weights and the values are right, and the context is not. Look at it: it is "
            "`weights @ values` alone."
        ),
        "context_changed": (
            "Something is applied to the context: it is plain sums of values. Look at what "
            "happens between `weights @ values` and `out_proj`."
        ),
    },
    (9, "value"): {
        "tokens_mixed": (
            "The rows that out_proj gets hold the context of several tokens. Look at the step "
            "after the context: swap tokens and heads back, `context.transpose(1, 2)`, before the "
            "view."
        ),
    },
    (10, "value"): {
        "heads_not_beside": (
            "The heads are not laid side by side: head 0's head_dim features come first, then "
            "head 1's. Look at the view or reshape to (b, num_tokens, d_out)."
        ),
    },
    (11, "value"): {
        "no_tensor_returned": "{came}: return the output tensor.",
        "other_dtype_returned": (
            "The output holds {dtype}, x holds torch.float32. Look for a conversion such as "
            "`.double()` or `.half()`."
        ),
        "out_changed": (
            "The right output is computed, and something is done to it before it is returned. "
            "Look at the last lines: return `out_proj(context)` alone."
        ),
        "out_not_right": (
            "out_proj gets the right context, and what comes of it is not right. Look at the last "
            "lines: return `out_proj(context)` alone."
        ),
        "double_not_returned": "After `.double()` the output still holds {dtype}.",
    },
}

SENTENCES = {
    name: (step, sentence, kind)
    for (step, kind), sentences in FINDINGS.items()
    for name, sentence in sentences.items()
}
