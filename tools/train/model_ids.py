"""The control tokens, in the order of their ids, and the size of the vocabulary."""
CONTROL = ["<|endoftext|>", "<|startoftext|>", "<|return|>", "<|constrain|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>",
           "<|call|>"]
VOCABULARY = 3584
ID = {text: number for number, text in enumerate(CONTROL)}
