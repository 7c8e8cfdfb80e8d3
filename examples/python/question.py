#!/usr/bin/env python3
"""Questions answered side by side, with ctypes alone:  question.py MODEL [QUESTION ...]
INFERNO_LIBRARY names the library if the system does not find libinferno.so.0."""
import asyncio
import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_int64, c_size_t, c_uint64, c_void_p

OK, CONTENT, END = 0, 1, 6
Handle = c_uint64  # a struct with one number is passed as the number


class Error(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("status", c_int32), ("what", c_char * 1024), ("why", c_char * 512),
                ("next", c_char * 512)]


class Part(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int32), ("status", c_int32), ("call", c_int32),
                ("length", c_size_t), ("id", c_char * 128), ("text", c_char * 1024)]


library = ctypes.CDLL(os.environ.get("INFERNO_LIBRARY", "libinferno.so.0"))


def function(name, *types):
    """The function, with the types of its arguments; failures are exceptions."""
    found = getattr(library, "inferno_" + name)
    found.argtypes = [*types, POINTER(Error)]

    def call(*arguments):
        error = Error(size=ctypes.sizeof(Error))
        if found(*arguments, byref(error)) != OK:
            raise RuntimeError(b": ".join(filter(None, (error.what, error.why, error.next))).decode())

    return call


load = function("model_load", c_char_p, c_void_p, POINTER(Handle))
unload = function("model_unload", Handle)
new = function("request_new", POINTER(Handle))
add_message = function("request_add_message", Handle, c_char_p, c_char_p)
set_integer = function("request_set_integer", Handle, c_char_p, c_int64)
free_request = function("request_free", Handle)
ask = function("ask", Handle, Handle, POINTER(Handle))
next_part = function("answer_next", Handle, c_int64, POINTER(Part))
free_answer = function("answer_free", Handle)


async def answer_to(model, question):
    request, answer, part = Handle(), Handle(), Part(size=ctypes.sizeof(Part))
    new(byref(request))
    add_message(request, b"user", question.encode())
    set_integer(request, b"max_tokens", 40)
    set_integer(request, b"seed", 7)
    ask(model, request, byref(answer))
    try:
        while part.kind != END:
            # In a thread, because it waits; ctypes lets go of the interpreter meanwhile.
            await asyncio.to_thread(next_part, answer, -1, byref(part))
            if part.kind == CONTENT:
                yield ctypes.string_at(ctypes.addressof(part) + Part.text.offset, part.length).decode()
    finally:
        free_answer(answer)
        free_request(request)


async def main(name, *questions):
    model = Handle()
    load(name.encode(), None, byref(model))
    async def whole(question):
        return "".join([piece async for piece in answer_to(model, question)])

    print("\n".join(await asyncio.gather(*map(whole, questions or ["Tell me a story."]))))
    unload(model)


asyncio.run(main(*sys.argv[1:]))
